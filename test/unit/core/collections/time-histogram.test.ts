import { describe, expect, it } from "vitest";
import { TimeHistogram } from "../../../../src/core/collections/time-histogram.js";

describe("TimeHistogram", () => {
  it("knows quantiles within half a percent, and the mean exactly", () => {
    const histogram = new TimeHistogram();
    for (let ms = 1; ms <= 10_000; ms += 1) histogram.add(ms);
    for (const ratio of [0.01, 0.5, 0.95, 0.99, 1]) {
      const found = histogram.quantile(ratio) ?? 0;
      expect(Math.abs(found / (ratio * 10_000) - 1)).toBeLessThan(0.006);
    }
    expect(histogram.mean).toBe(5_000.5);
  });

  it("adds others up, and forgets", () => {
    const [one, other] = [new TimeHistogram(), new TimeHistogram()];
    one.add(10);
    other.add(1_000);
    one.merge(other);
    expect(one.count).toBe(2);
    expect(one.quantile(1)).toBeCloseTo(1_000, -1);
    one.clear();
    expect([one.quantile(0.5), one.mean]).toEqual([undefined, undefined]);
  });
});
