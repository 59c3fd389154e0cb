import { describe, expect, it } from "vitest";
import { power } from "../../../../src/core/collections/power.js";

describe("power", () => {
  it.each([
    [2, 10],
    [0.5, 3.25],
    [1e6, -1.7],
    [1, 12.5],
    [7, 0],
  ])("is %d to the power of %d", (base, exponent) => {
    const ratio = power(base, exponent) / base ** exponent;
    expect(Math.abs(ratio - 1)).toBeLessThan(1e-13);
  });

  it("has the same bits in every version of V8", () => {
    expect(power(1.02, 330.5)).toBe(695.595505678418);
  });
});
