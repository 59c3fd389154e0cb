import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SpaceSaving } from "../../../src/core/collections/space-saving.js";
import {
  ratios,
  topRatios,
  weightedQuantiles,
  zipfExponent,
} from "../../../src/recommend/demand-figures.js";
import { propertyRuns } from "../../support/seeds.js";

function sketchOf(counts: readonly number[], countersMax = 1_000): SpaceSaving<string> {
  const sketch = new SpaceSaving<string>(countersMax);
  for (const [i, count] of counts.entries()) sketch.add(`user-${i}`, count);
  return sketch;
}

describe("weightedQuantiles()", () => {
  it("finds what it would find if each value stood there as often as it weighs", () => {
    const pair = fc.tuple(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 1, max: 8 }));
    fc.assert(
      fc.property(fc.array(pair, { minLength: 1, maxLength: 40 }), (pairs) => {
        const spread = pairs.flatMap(([value, weight]) =>
          Array.from({ length: weight }, () => value),
        );
        spread.sort((a, b) => a - b);
        const parts = [0.1, 0.5, 0.9, 0.99, 1];
        const expected = parts.map((part) => spread[Math.ceil(part * spread.length - 1e-9) - 1]);
        const values = Float64Array.from(pairs, ([value]) => value);
        const weights = Float64Array.from(pairs, ([, weight]) => weight);
        expect(weightedQuantiles(values, weights, parts)).toEqual(expected);
      }),
      propertyRuns(200),
    );
  });
});

describe("zipfExponent()", () => {
  it.each([0, 0.5, 1, 2])("finds an exponent of %d", (exponent) => {
    const counts = Array.from({ length: 200 }, (_, i) => Math.round(1e6 * (i + 1) ** -exponent));
    expect(zipfExponent(sketchOf(counts))).toBeCloseTo(exponent, 1);
  });

  it("is not told of few callers, or of counts that may be wrong", () => {
    expect(zipfExponent(sketchOf([9, 8, 7, 6, 5, 4, 3, 2, 1]))).toBeUndefined();
    expect(
      zipfExponent(
        sketchOf(
          Array.from({ length: 500 }, () => 2),
          20,
        ),
      ),
    ).toBeUndefined();
  });
});

describe("topRatios()", () => {
  it("adds up the most frequent callers", () => {
    const counts = Array.from({ length: 20 }, (_, i) => (i === 0 ? 50 : i < 10 ? 3 : 2.3));
    const { top1, top10, top100 } = topRatios(sketchOf(counts));
    expect([top1, top10, top100].map((one) => Number(one.toFixed(3)))).toEqual([0.5, 0.77, 1]);
    expect(topRatios(sketchOf([]))).toEqual({ top1: 0, top10: 0, top100: 0 });
  });
});

describe("ratios()", () => {
  it("makes parts of counts", () => {
    expect(ratios([1, 3, 0])).toEqual([0.25, 0.75, 0]);
    expect(ratios([0, 0])).toEqual([0, 0]);
  });
});
