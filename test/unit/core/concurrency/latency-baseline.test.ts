import { describe, expect, it } from "vitest";
import {
  baselineCountMin,
  baselineMemoryMs,
  baselineWindowMs,
  LatencyBaseline,
} from "../../../../src/core/concurrency/latency-baseline.js";

function second(baseline: LatencyBaseline, latencyMs: number, startMs: number): void {
  for (let i = 0; i < baselineCountMin; i += 1) baseline.add(latencyMs, startMs + i);
}

describe("LatencyBaseline", () => {
  it("is the lowest mean of a second", () => {
    const baseline = new LatencyBaseline();
    expect(baseline.baselineMs).toBeUndefined();
    [50, 48, 120, 70].forEach((latencyMs, i) => {
      second(baseline, latencyMs, i * baselineWindowMs);
    });
    expect(baseline.baselineMs).toBe(48);
  });

  it("takes no single fast request for it", () => {
    const baseline = new LatencyBaseline();
    second(baseline, 50, 0);
    for (let i = 1; i < baselineCountMin; i += 1) baseline.add(1, baselineWindowMs + i);
    second(baseline, 60, 2.5 * baselineWindowMs);
    second(baseline, 60, 4 * baselineWindowMs);
    expect(baseline.baselineMs).toBe(50);
  });

  it("follows a service that got slower when what was before is forgotten", () => {
    const baseline = new LatencyBaseline();
    second(baseline, 50, 0);
    let seenMs = 0;
    for (let nowMs = baselineWindowMs; nowMs < 3 * baselineMemoryMs; nowMs += baselineWindowMs) {
      second(baseline, 80, nowMs);
      if (baseline.baselineMs === 50) seenMs = nowMs;
    }
    expect(baseline.baselineMs).toBe(80);
    expect(seenMs).toBeGreaterThanOrEqual(baselineMemoryMs - baselineWindowMs);
    expect(seenMs).toBeLessThanOrEqual(2 * baselineMemoryMs);
  });

  it("keeps what it knows over silence", () => {
    const baseline = new LatencyBaseline();
    second(baseline, 50, 0);
    second(baseline, 50, baselineWindowMs);
    baseline.add(90, 10 * baselineMemoryMs);
    baseline.add(90, 20 * baselineMemoryMs);
    expect(baseline.baselineMs).toBe(50);
  });
});
