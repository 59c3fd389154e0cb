import { describe, expect, it } from "vitest";
import { overriddenLimit, overrideRefusal } from "../../../../src/core/limits/override.js";
import { testLimit } from "../../../support/policies.js";

const limit = testLimit(10, { burst: 5 });

describe("overriddenLimit()", () => {
  it.each([
    [{ kind: "frozen" }, 0, 0],
    [{ kind: "amount", hits: 3, burst: 9 }, 3, 9],
    [{ kind: "amount", hits: 0, burst: 9 }, 0, 0],
    [{ kind: "multiplier", by: 1.5 }, 15, 7],
    [{ kind: "multiplier", by: 0.01 }, 1, 1],
    [{ kind: "multiplier", by: 1e9 }, 4_294_967_295, 4_294_967_295],
  ] as const)("makes of 10 and 5 under %j %i and %i", (effect, hits, burst) => {
    expect(overriddenLimit(limit, { effect })).toEqual({ ...limit, hits, burst });
  });

  it("keeps a limit that blocks everything, and one burst a window", () => {
    const blocked = testLimit(0, { burst: 0 });
    expect(overriddenLimit(blocked, { effect: { kind: "multiplier", by: 9 } })).toEqual(blocked);
    const windowed = testLimit(10, { algorithm: { kind: "fixed_window" } });
    expect(overriddenLimit(windowed, { effect: { kind: "amount", hits: 4, burst: 9 } })).toEqual({
      ...windowed,
      hits: 4,
      burst: 4,
    });
    expect(overriddenLimit(windowed, { effect: { kind: "multiplier", by: 1.25 } }).burst).toBe(12);
  });
});

describe("overrideRefusal()", () => {
  it("refuses what is above the most", () => {
    const most = (hits: number, burst: number) =>
      overrideRefusal(limit, { effect: { kind: "amount", hits, burst } }, 2);
    expect(most(20, 10)).toBeUndefined();
    expect(most(21, 10)).toBe("aboveMax");
    expect(most(20, 11)).toBe("aboveMax");
    expect(overrideRefusal(limit, { effect: { kind: "frozen" } }, 1)).toBeUndefined();
  });

  it("refuses what would drain for more than ten years", () => {
    const yearly = testLimit(1, { unit: "year", periodUs: 31_536_000_000_000, burst: 10 });
    const by = (burst: number) =>
      overrideRefusal(yearly, { effect: { kind: "amount", hits: 1, burst } }, 100);
    expect(by(10)).toBeUndefined();
    expect(by(11)).toBe("drainsTooLong");
  });
});
