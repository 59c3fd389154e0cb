import { describe, expect, it } from "vitest";
import { SignalLimit } from "../../../../src/core/concurrency/signal-limit.js";

/** The time of readings where it does not matter. */
const anyMs = 0;

const limits = { initial: 50, min: 10, max: 1_000 };

function lagLaw(smoothingRatio = 1): SignalLimit {
  return new SignalLimit(
    { law: "signal", target: 10_000, critical: 100_000, smoothingRatio, pid: undefined },
    limits,
  );
}

describe("SignalLimit", () => {
  it.each([
    { lag: -5, limit: 1_000 },
    { lag: 0, limit: 1_000 },
    { lag: 10_000, limit: 1_000 },
    { lag: 10_001, limit: 1_000 },
    { lag: 10_091, limit: 999 },
    { lag: 32_500, limit: 753 },
    { lag: 55_000, limit: 505 },
    { lag: 99_999, limit: 10 },
    { lag: 100_000, limit: 10 },
    { lag: 5_000_000, limit: 10 },
  ])("gives $limit permits at a lag of $lag", ({ lag, limit }) => {
    const law = lagLaw();
    law.read(lag, anyMs);
    expect(law.limit).toBe(limit);
  });

  it("begins with its initial limit, and forgets it at the first reading", () => {
    const law = lagLaw(0.1);
    expect([law.limit, law.facts()]).toEqual([50, {}]);
    law.read(55_000, anyMs);
    expect([law.limit, law.facts()]).toEqual([505, { reading: 55_000 }]);
  });

  it("follows at once without smoothing, and by its part with it", () => {
    const atOnce = lagLaw();
    atOnce.read(10_000, anyMs);
    atOnce.read(100_000, anyMs);
    expect(atOnce.limit).toBe(10);
    const smooth = lagLaw(0.25);
    smooth.read(10_000, anyMs);
    smooth.read(100_000, anyMs);
    expect(smooth.facts()).toEqual({ reading: 32_500 });
    expect(smooth.limit).toBe(753);
  });

  it("leaves aside what is no number", () => {
    const law = lagLaw();
    law.read(55_000, anyMs);
    law.read(Number.NaN, anyMs);
    law.read(Number.POSITIVE_INFINITY, anyMs);
    expect(law.limit).toBe(505);
  });

  it.each([
    { bound: "min", limit: 10 },
    { bound: "max", limit: 1_000 },
  ] as const)("holds its $bound while there is no reading", ({ bound, limit }) => {
    const law = lagLaw(0.5);
    law.read(55_000, anyMs);
    law.read(bound, anyMs);
    expect([law.limit, law.facts()]).toEqual([limit, {}]);
    // What comes then is not smoothed with what was long ago.
    law.read(32_500, anyMs);
    expect(law.limit).toBe(753);
  });

  it("learns nothing from requests", () => {
    const law = lagLaw();
    law.record();
    law.update();
    expect(law.limit).toBe(50);
  });
});

/**
 * A consumer that takes `takenPerSecond`, fed by permits of one second each and read every 5 s.
 *
 * @returns the lag and the limit after each reading of the hour
 */
function lagOf(law: SignalLimit, takenPerSecond: number): readonly (readonly [number, number])[] {
  let lag = 60_000;
  return Array.from({ length: 720 }, (_, i) => {
    law.read(lag, i * 5_000);
    lag = Math.max(0, lag + 5 * (law.limit - takenPerSecond));
    return [lag, law.limit] as const;
  });
}

function controlled(pid = { kp: 1, kiPerSecond: 0.005, kdSeconds: 0 }): SignalLimit {
  const settings = { law: "signal", target: 10_000, critical: 100_000, smoothingRatio: 1 } as const;
  return new SignalLimit({ ...settings, pid }, limits);
}

describe("SignalLimit with a controller", () => {
  it("begins on the straight line", () => {
    const law = controlled();
    law.read(55_000, anyMs);
    expect(law.limit).toBe(505);
  });

  it.each([{ takenPerSecond: 100 }, { takenPerSecond: 500 }, { takenPerSecond: 900 }])(
    "brings a lag to its target with a consumer of $takenPerSecond/s, where the line does not",
    ({ takenPerSecond }) => {
      const last = lagOf(controlled(), takenPerSecond).slice(-120);
      for (const [lag, limit] of last) {
        expect(Math.abs(lag - 10_000)).toBeLessThan(1_000);
        expect(Math.abs(limit - takenPerSecond)).toBeLessThan(50);
      }
      const [lagOnLine = 0] = lagOf(lagLaw(), takenPerSecond).at(-1) ?? [];
      expect(lagOnLine).toBeGreaterThan(15_000);
    },
  );

  it("gives everything back where the lag is gone", () => {
    const [, limit] = lagOf(controlled(), 2_000).at(-1) ?? [];
    expect(limit).toBe(1_000);
  });

  it("begins anew after readings were missing", () => {
    const law = controlled();
    law.read(90_000, 0);
    law.read(90_000, 60_000);
    law.read("max", 90_000);
    law.read(55_000, 95_000);
    expect(law.limit).toBe(505);
  });
});
