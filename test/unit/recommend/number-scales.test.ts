import { describe, expect, it } from "vitest";
import {
  needOfStep,
  needStepCount,
  roundNumbers,
  roundUp,
  stepOfNeed,
} from "../../../src/recommend/number-scales.js";

describe("roundUp()", () => {
  it.each([
    [0.2, 1],
    [1, 1],
    [4, 5],
    [8, 10],
    [10.000000000001, 10],
    [10.1, 15],
    [71, 100],
    [1e9, 7e6],
  ])("makes %d to %d", (value, expected) => {
    expect(roundUp(value)).toBe(expected);
  });

  it("at most doubles a value", () => {
    for (let value = 1; value < 7e6; value *= 1.01) expect(roundUp(value)).toBeLessThan(2 * value);
    expect(roundNumbers).toEqual([...roundNumbers].sort((a, b) => a - b));
  });
});

describe("stepOfNeed()", () => {
  it("keeps round numbers and those up to 40, and is at most 9 % and a hit above others", () => {
    for (let hits = 0; hits <= 40; hits += 1) expect(needOfStep(stepOfNeed(hits))).toBe(hits);
    for (const hits of roundNumbers) expect(needOfStep(stepOfNeed(hits))).toBe(hits);
    for (let hits = 1; hits < 7e6; hits *= 1.003) {
      const need = needOfStep(stepOfNeed(hits));
      expect(need).toBeGreaterThanOrEqual(hits * (1 - 1e-6));
      expect(need).toBeLessThan(1.09 * hits + 2);
    }
  });

  it("takes what a 32-bit float cannot tell from a whole number for that", () => {
    expect(needOfStep(stepOfNeed(Math.fround(7.0000001)))).toBe(7);
    expect(needOfStep(stepOfNeed(7.001))).toBe(8);
  });

  it("has a last step for all that is above", () => {
    expect(stepOfNeed(1e12)).toBe(needStepCount - 1);
    expect(needOfStep(needStepCount - 1)).toBeGreaterThan(7e6);
    expect(needStepCount).toBeLessThanOrEqual(256);
  });
});
