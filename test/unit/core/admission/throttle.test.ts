import { describe, expect, it } from "vitest";
import { Throttle } from "../../../../src/core/admission/throttle.js";

/** A throttle that has seen many requests at one time, of which a share was accepted. */
function seen(acceptShare: number, { k = 2, count = 10_000 } = {}): Throttle {
  const throttle = new Throttle({ k, memoryMs: 30_000 });
  for (let i = 0; i < count; i += 1) {
    if (i < acceptShare * count) throttle.accepted(0);
    else throttle.refused(0);
  }
  return throttle;
}

describe("Throttle", () => {
  it.each([
    { acceptShare: 1, k: 2, ratio: 0 },
    { acceptShare: 0.5, k: 2, ratio: 0 },
    { acceptShare: 0.1, k: 2, ratio: 0.8 },
    { acceptShare: 0, k: 2, ratio: 1 },
    { acceptShare: 0.5, k: 1, ratio: 0.5 },
    { acceptShare: 0.5, k: 1.1, ratio: 0.45 },
  ])("refuses $ratio where $acceptShare was accepted and K is $k", ({ acceptShare, k, ratio }) => {
    expect(seen(acceptShare, { k }).rejectRatio(0)).toBeCloseTo(ratio, 3);
  });

  it("refuses nothing before it has seen anything, and little after little", () => {
    const throttle = new Throttle({ k: 2, memoryMs: 30_000 });
    expect(throttle.rejectRatio(0)).toBe(0);
    throttle.refused(0);
    expect(throttle.rejectRatio(0)).toBe(1 / 2);
    throttle.refused(0);
    expect(throttle.rejectRatio(0)).toBe(2 / 3);
  });

  it("lets something through always, so that it sees the end", () => {
    const throttle = seen(0, { count: 1_000_000 });
    expect(throttle.rejectRatio(0)).toBeLessThan(1);
    expect(throttle.rejects(0, 0.999_999_9)).toBe(false);
    expect(throttle.rejects(0, 0.999)).toBe(true);
  });

  it("counts what it refuses itself as a request", () => {
    const throttle = seen(0.5, { count: 100 });
    expect(throttle.rejectRatio(0)).toBe(0);
    throttle.refused(0);
    expect(throttle.rejectRatio(0)).toBeCloseTo(1 / 102, 9);
  });

  it("forgets with time, and faster than new accepts alone would make good", () => {
    const throttle = seen(0.1, { count: 100 });
    const before = throttle.rejectRatio(0);
    const after = throttle.rejectRatio(300_000);
    expect(before).toBeGreaterThan(0.79);
    // Ten time constants later 100 x exp(-10) requests are left.
    expect(after).toBeLessThan(0.005);
  });

  it("holds what goes on to a dead service at a few, and recovers with it", () => {
    const throttle = new Throttle({ k: 2, memoryMs: 30_000 });
    // Draws spread evenly over [0, 1), so that the run is the same each time.
    const draw = (i: number): number => (i * 0.618_033_988_75) % 1;
    const run = (fromMs: number, isAlive: boolean): number => {
      let sentCount = 0;
      for (let i = 0; i < 6_000; i += 1) {
        const nowMs = fromMs + i * 10;
        if (throttle.rejects(nowMs, draw(i))) throttle.refused(nowMs);
        else {
          sentCount += 1;
          if (isAlive) throttle.accepted(nowMs);
          else throttle.refused(nowMs);
        }
      }
      return sentCount;
    };
    expect(run(0, true)).toBe(6_000);
    // Ten time constants: what was accepted before is forgotten.
    for (let minute = 1; minute <= 5; minute += 1) run(minute * 60_000, false);
    expect(run(360_000, false)).toBeLessThan(10);
    // Accepts grow e-fold each 30 s, from the two that went through to 3,000.
    const sentCounts = [7, 8, 9, 10, 11].map((minute) => run(minute * 60_000, true));
    expect(sentCounts[0]).toBeLessThan(100);
    expect(sentCounts[1]).toBeLessThan(1_000);
    expect(sentCounts[4]).toBeGreaterThan(5_900);
  });
});
