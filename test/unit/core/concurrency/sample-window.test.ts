import { describe, expect, it } from "vitest";
import type {
  ConcurrencySample,
  WindowedSample,
} from "../../../../src/core/concurrency/concurrency-limit.js";
import {
  SampleWindow,
  sampleWindowMs,
  sampleWindowMsMax,
  windowRttCountMax,
  windowSampleCountMin,
} from "../../../../src/core/concurrency/sample-window.js";
import { sampleOf } from "../../../support/concurrency-samples.js";

function ended(endMs: number, rttMs: number, more: Partial<ConcurrencySample> = {}) {
  return sampleOf({ startMs: endMs - rttMs, endMs, ...more });
}

/** Adds samples `gapMs` apart until a window ends. */
function firstWindow(window: SampleWindow, gapMs: number, rttMs: number): WindowedSample {
  for (let endMs = 0; endMs <= 1_000_000; endMs += gapMs) {
    const done = window.add(ended(endMs, rttMs));
    if (done !== undefined) return done;
  }
  throw new Error("no window ended");
}

describe("SampleWindow", () => {
  it.each([
    { what: "a second", gapMs: 10, rttMs: 50, endMs: sampleWindowMs, count: 101 },
    { what: "ten samples", gapMs: 500, rttMs: 50, endMs: 4_500, count: windowSampleCountMin },
    { what: "two round trips", gapMs: 100, rttMs: 2_000, endMs: 4_000, count: 41 },
    { what: "ten seconds", gapMs: 100, rttMs: 60_000, endMs: sampleWindowMsMax, count: 101 },
  ])("lasts $what at least", ({ gapMs, rttMs, endMs, count }) => {
    const done = firstWindow(new SampleWindow({ kind: "mean" }), gapMs, rttMs);
    expect(done).toMatchObject({ endMs, sampleCount: count, rttMs });
  });

  it("tells the mean, the most permits and the drops, and begins anew", () => {
    const window = new SampleWindow({ kind: "mean" });
    for (let i = 0; i < 10; i += 1) window.add(ended(i, 10 * i, { inFlight: 20 - i }));
    window.add(ended(500, 7_000, { outcome: "dropped", inFlight: 30 }));
    window.add(ended(600, 7_000, { outcome: "ignore", inFlight: 99 }));
    const done = window.add(ended(1_000, 122));
    expect(done).toEqual({
      rttMs: 52,
      sampleCount: 11,
      droppedCount: 1,
      inFlightMax: 30,
      servedPerMs: 0.011,
      endMs: 1_000,
    } satisfies WindowedSample);
    expect(window.add(ended(3_000, 10))).toBeUndefined();
  });

  it("has no latency where all were dropped", () => {
    const window = new SampleWindow({ kind: "mean" });
    let done: WindowedSample | undefined;
    for (let i = 0; i <= 10; i += 1) done = window.add(ended(i * 100, 9, { outcome: "dropped" }));
    expect(done).toMatchObject({ rttMs: undefined, sampleCount: 0, droppedCount: 11 });
  });

  it("tells a percentile, of the first thousand", () => {
    const window = new SampleWindow({ kind: "percentile", percentile: 50 });
    for (let i = 1; i <= windowRttCountMax; i += 1) window.add(ended(i / 10, 1_001 - i));
    for (let i = 0; i < 5_000; i += 1) window.add(ended(200, 1));
    expect(window.add(ended(1_001, 1))?.rttMs).toBe(500);
  });

  it("forgets what it has when it begins anew", () => {
    const window = new SampleWindow({ kind: "percentile", percentile: 100 });
    for (let i = 0; i < 9; i += 1) window.add(ended(i, 900, { inFlight: 70 }));
    window.restart();
    for (let i = 0; i < 10; i += 1) window.add(ended(100 + i, 10));
    expect(window.add(ended(1_100, 10))).toMatchObject({ rttMs: 10, inFlightMax: 1 });
  });
});
