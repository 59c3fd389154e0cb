import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { alignTimeline, Timeline, timelineStepsMax } from "../../../src/simulate/timeline.js";
import { propertyRuns } from "../../support/seeds.js";

const second = 1_000_000;

describe("Timeline", () => {
  it("counts by the second", () => {
    const timeline = new Timeline();
    expect(timeline.read()).toBeUndefined();
    timeline.add(10 * second);
    timeline.add(10.9 * second, 2);
    timeline.add(12 * second);
    timeline.add(3 * second);
    expect(timeline.read()).toEqual({ startUs: 10 * second, stepUs: second, counts: [4, 0, 1] });
  });

  it("has longer steps where there would be too many, and loses nothing", () => {
    const times = fc.array(fc.nat(100_000), { minLength: 1 });
    fc.assert(
      fc.property(times, (seconds) => {
        const timeline = new Timeline();
        const sorted = seconds.toSorted((one, other) => one - other);
        for (const one of sorted) timeline.add(one * second);
        const { counts = [], startUs = 0, stepUs = 0 } = timeline.read() ?? {};
        expect(counts.length).toBeLessThanOrEqual(timelineStepsMax);
        expect(startUs % stepUs).toBe(0);
        counts.forEach((count, step) => {
          const from = startUs + step * stepUs;
          const inStep = sorted.filter((one) => {
            return one * second >= from && one * second < from + stepUs;
          });
          expect(count).toBe(inStep.length);
        });
      }),
      propertyRuns(100),
    );
  });
});

describe("alignTimeline()", () => {
  it("lays one timeline over a coarser one", () => {
    const onto = { startUs: 0, stepUs: 4 * second, counts: [9, 9, 9] };
    const counts = { startUs: 4 * second, stepUs: second, counts: [1, 2, 3, 4, 5] };
    expect(alignTimeline(counts, onto)).toEqual([0, 10, 5]);
    expect(alignTimeline(undefined, onto)).toEqual([0, 0, 0]);
  });
});
