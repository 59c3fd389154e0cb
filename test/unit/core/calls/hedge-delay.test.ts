import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  HedgeDelay,
  type HedgeDelaySettings,
  hedgeMemoryMs,
  hedgeSampleCountMin,
} from "../../../../src/core/calls/hedge-delay.js";
import { propertyRuns } from "../../../support/seeds.js";

const settings: HedgeDelaySettings = { quantile: 0.95, afterMsMin: 10 };

/** Records so many latencies of the same length. */
function record(
  hedges: HedgeDelay,
  latencyMs: number,
  { nowMs = 0, count }: { nowMs?: number; count: number },
): void {
  for (let i = 0; i < count; i += 1) hedges.record(latencyMs, nowMs);
}

describe("HedgeDelay", () => {
  it("waits for the quantile of latencies", () => {
    const hedges = new HedgeDelay(settings);
    for (let ms = 1; ms <= 100; ms += 1) hedges.record(ms, 0);
    expect(hedges.delayMs(0)).toBeGreaterThan(94.5);
    expect(hedges.delayMs(0)).toBeLessThan(95.5);
  });

  it("says nothing before it has seen enough", () => {
    const hedges = new HedgeDelay(settings);
    expect(hedges.delayMs(0)).toBeUndefined();
    record(hedges, 50, { count: hedgeSampleCountMin - 1 });
    expect(hedges.delayMs(0)).toBeUndefined();
    hedges.record(50, 0);
    expect(hedges.delayMs(0)).toBeCloseTo(50, 0);
  });

  it("waits for the least wait at least", () => {
    const hedges = new HedgeDelay(settings);
    record(hedges, 1, { count: 100 });
    expect(hedges.delayMs(0)).toBe(10);
  });

  it("follows latencies that change within two periods", () => {
    const hedges = new HedgeDelay(settings);
    record(hedges, 50, { count: 10_000 });
    record(hedges, 500, { nowMs: hedgeMemoryMs, count: 100 });
    expect(hedges.delayMs(hedgeMemoryMs)).toBeCloseTo(50, 0);
    record(hedges, 500, { nowMs: hedgeMemoryMs * 2, count: 10 });
    expect(hedges.delayMs(hedgeMemoryMs * 2)).toBeGreaterThan(495);
  });

  it("sees within 64 latencies that all are slower", () => {
    const hedges = new HedgeDelay(settings);
    record(hedges, 50, { count: 100 });
    expect(hedges.delayMs(0)).toBeCloseTo(50, 0);
    record(hedges, 500, { count: 64 });
    expect(hedges.delayMs(0)).toBeGreaterThan(495);
  });

  it("forgets all after two periods of nothing", () => {
    const hedges = new HedgeDelay(settings);
    record(hedges, 50, { count: 1_000 });
    expect(hedges.delayMs(hedgeMemoryMs * 2 - 1)).toBeCloseTo(50, 0);
    record(hedges, 50, { nowMs: hedgeMemoryMs * 2, count: 1_000 });
    expect(hedges.delayMs(hedgeMemoryMs * 10)).toBeUndefined();
  });

  it.each([Number.NaN, -1, Number.NEGATIVE_INFINITY])(
    "passes over a latency of %s",
    (latencyMs) => {
      const hedges = new HedgeDelay(settings);
      record(hedges, latencyMs, { count: 1_000 });
      expect(hedges.delayMs(0)).toBeUndefined();
      record(hedges, 50, { count: 100 });
      expect(hedges.delayMs(0)).toBeCloseTo(50, 0);
    },
  );

  it("is within a percent of the exact quantile, for any latencies and quantile", () => {
    const latencies = fc.array(fc.double({ min: 0.1, max: 100_000, noNaN: true }), {
      minLength: hedgeSampleCountMin,
      maxLength: 500,
    });
    const quantiles = fc.double({ min: 0.01, max: 0.999, noNaN: true });
    fc.assert(
      fc.property(latencies, quantiles, (all, quantile) => {
        const hedges = new HedgeDelay({ quantile, afterMsMin: 0 });
        for (const [i, ms] of all.entries()) hedges.record(ms, i);
        const exact = all.toSorted((a, b) => a - b)[Math.ceil(quantile * all.length) - 1] ?? 0;
        const found = hedges.delayMs(all.length) ?? 0;
        expect(Math.abs(found / exact - 1)).toBeLessThan(0.01);
      }),
      propertyRuns(100),
    );
  });
});
