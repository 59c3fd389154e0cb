import { describe, expect, it } from "vitest";
import { joinLatencies, LatencyWindow } from "../../../../src/rpc/nodes/latency-window.js";
import { bucketsMax } from "../../../../src/rpc/nodes/metrics-message.js";

describe("LatencyWindow", () => {
  it("adds up what flushes have by bucket, and finds the median in them", () => {
    const window = new LatencyWindow();
    window.addBuckets(4, 40, [
      { upTo: 10, count: 1 },
      { upTo: 25, count: 4 },
    ]);
    window.addBuckets(4, 60, [
      { upTo: 10, count: 1 },
      { upTo: 25, count: 4 },
    ]);
    expect(window.take()).toEqual({ count: 8, sumMs: 100, p50: 15 });
    expect(window.take()).toEqual({ count: 0, sumMs: 0 });
  });

  it.each([
    ["all in the first bucket", [4, 4], 5],
    ["half up to a bound", [4, 8], 10],
  ])("has the median of %s", (_, [first = 0, all = 0], p50) => {
    const window = new LatencyWindow();
    window.addBuckets(all, 0, [
      { upTo: 10, count: first },
      { upTo: 25, count: all },
    ]);
    expect(window.take().p50).toBe(p50);
  });

  it("says no median that lies above all bounds", () => {
    const window = new LatencyWindow();
    window.addBuckets(4, 0, [
      { upTo: 10, count: 1 },
      { upTo: Number.POSITIVE_INFINITY, count: 4 },
    ]);
    expect(window.take().p50).toBeUndefined();
  });

  it("begins a bucket where an empty one ends", () => {
    const window = new LatencyWindow();
    window.addBuckets(4, 0, [
      { upTo: 10, count: 0 },
      { upTo: 25, count: 0 },
      { upTo: 45, count: 4 },
    ]);
    expect(window.take().p50).toBe(35);
  });

  it("takes no more buckets than one flush may have, however many flushes there are", () => {
    const window = new LatencyWindow();
    window.addBuckets(1, 0, [{ upTo: 100, count: 1 }]);
    for (let i = 1; i < bucketsMax; i += 1) window.addBuckets(0, 0, [{ upTo: 100 + i, count: 0 }]);
    // As the first bucket they would be where the median is.
    for (let i = 0; i < 10; i += 1) window.addBuckets(1, 0, [{ upTo: 1 + i, count: 1 }]);
    window.addBuckets(9, 0, [{ upTo: 100, count: 9 }]);
    expect(window.take().p50).toBe(100);
  });

  it("is not misled by buckets that fall", () => {
    const window = new LatencyWindow();
    window.addBuckets(4, 0, [
      { upTo: 10, count: 1 },
      { upTo: 25, count: 0 },
      { upTo: 40, count: 4 },
    ]);
    expect(window.take()).toEqual({ count: 4, sumMs: 0, p50: 20 });
  });

  it("weighs the medians of flushes, and keeps the least of all", () => {
    const window = new LatencyWindow();
    window.addQuantiles({ count: 1, sumMs: 10 }, { minMs: 10, p50Ms: 10 });
    window.addQuantiles({ count: 3, sumMs: 90 }, { minMs: 20, p50Ms: 30 });
    window.addQuantiles({ count: 0, sumMs: 0 }, { minMs: 0, p50Ms: 0 });
    expect(window.take()).toEqual({ count: 4, sumMs: 100, p50: 25, minMs: 10 });
  });

  it.each(["quantiles first", "buckets first"])(
    "counts once what comes in both forms, %s",
    (order) => {
      const window = new LatencyWindow();
      const quantiles = (): void =>
        window.addQuantiles({ count: 2, sumMs: 30 }, { minMs: 10, p50Ms: 12 });
      const buckets = (): void => window.addBuckets(2, 30, [{ upTo: 25, count: 2 }]);
      for (let flush = 0; flush < 2; flush += 1) {
        if (order === "quantiles first") quantiles();
        buckets();
        if (order === "buckets first") quantiles();
        expect(window.take()).toEqual({ count: 2, sumMs: 30, p50: 12, minMs: 10 });
      }
    },
  );
});

describe("joinLatencies()", () => {
  it("adds up, weighs medians, and keeps the least", () => {
    expect(
      joinLatencies([
        { count: 1, sumMs: 10, p50: 10, minMs: 10 },
        { count: 0, sumMs: 0 },
        { count: 3, sumMs: 90, p50: 30, minMs: 5 },
      ]),
    ).toEqual({ count: 4, sumMs: 100, p50: 25, minMs: 5 });
    expect(joinLatencies([])).toEqual({ count: 0, sumMs: 0 });
    const only = { count: 2, sumMs: 4 };
    expect(joinLatencies([only, { count: 0, sumMs: 0 }])).toEqual(only);
  });
});
