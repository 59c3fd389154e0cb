import { describe, expect, it } from "vitest";
import { statisticOf } from "../../../../src/core/concurrency/rtt-statistic.js";

describe("statisticOf()", () => {
  it("is the mean", () => {
    expect(statisticOf({ kind: "mean" }, [40, 10, 30, 20])).toBe(25);
  });

  it.each([
    { percentile: 0.1, value: 10 },
    { percentile: 25, value: 10 },
    { percentile: 50, value: 20 },
    { percentile: 51, value: 30 },
    { percentile: 75, value: 30 },
    { percentile: 99, value: 40 },
    { percentile: 100, value: 40 },
  ])("is $value at the percentile $percentile, by the nearest rank", ({ percentile, value }) => {
    expect(statisticOf({ kind: "percentile", percentile }, [10, 20, 30, 40])).toBe(value);
  });

  it("is a bug of nothing", () => {
    expect(() => statisticOf({ kind: "percentile", percentile: 50 }, [])).toThrow("of nothing");
  });
});
