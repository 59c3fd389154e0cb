import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StepSeries, stepsBackMax } from "../../../../src/core/collections/step-series.js";
import { propertyRuns } from "../../../support/seeds.js";

const bounds = { stepMs: 1_000, stepsMax: 5 };

function seriesOf(...steps: readonly (readonly [number, number])[]): StepSeries<"a" | "b"> {
  const series = new StepSeries<"a" | "b">(["a", "b"], bounds);
  for (const [step, value] of steps) {
    series.put(step * 1_000, (name) => (name === "a" ? value : -value));
  }
  return series;
}

describe("StepSeries", () => {
  it("holds the newest steps, and zeros for those that were left out", () => {
    expect(seriesOf().read(0)).toEqual({ startMs: undefined, columns: { a: [], b: [] } });
    expect(seriesOf([10, 1], [12, 3]).read(0)).toEqual({
      startMs: 10_000,
      columns: { a: [1, 0, 3], b: [-1, 0, -3] },
    });
    const long = seriesOf(...Array.from({ length: 9 }, (_, i) => [i + 1, i] as const));
    expect(long.read(0)).toMatchObject({ startMs: 5_000, columns: { a: [4, 5, 6, 7, 8] } });
    expect(long.byteCount).toBe(40);
  });

  it("tells what ends after a time, and of that the newest", () => {
    const series = seriesOf([1, 1], [2, 2], [3, 3], [4, 4]);
    expect(series.read(2_000)).toMatchObject({ startMs: 3_000, columns: { a: [3, 4] } });
    expect(series.read(2_001)).toMatchObject({ startMs: 3_000 });
    expect(series.read(1_999)).toMatchObject({ startMs: 2_000 });
    expect(series.read(4_000)).toMatchObject({ startMs: undefined, columns: { a: [] } });
    expect(series.read(0, 1)).toMatchObject({ startMs: 4_000, columns: { a: [4] } });
  });

  it("passes over what is older, and begins anew where a clock went back by far", () => {
    expect(seriesOf([100, 1], [100, 2], [99, 3]).read(0).columns.a).toEqual([1]);
    const anew = seriesOf([100, 1], [100 - stepsBackMax, 2]).read(0);
    expect(anew).toMatchObject({ startMs: (100 - stepsBackMax) * 1_000, columns: { a: [2] } });
  });

  it("is what a list of all steps would say", () => {
    const gaps = fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 30 });
    fc.assert(
      fc.property(gaps, fc.integer({ min: 0, max: 100 }), (steps, since) => {
        const series = new StepSeries<"a">(["a"], bounds);
        const all: number[] = [];
        let at = 0;
        for (const gap of steps) {
          at += gap;
          if (all.length > 0) for (let i = 1; i < gap; i += 1) all.push(0);
          all.push(at);
          series.put(at * 1_000, () => at);
        }
        const kept = all.map((value, i) => ({ value, step: at - all.length + 1 + i }));
        const right = kept.slice(-5).filter(({ step }) => step > since);
        expect(series.read(since * 1_000).columns.a).toEqual(right.map(({ value }) => value));
      }),
      propertyRuns(100),
    );
  });
});
