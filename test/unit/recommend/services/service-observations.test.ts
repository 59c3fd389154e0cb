import { describe, expect, test } from "vitest";
import { RequestSweep } from "../../../../src/recommend/services/request-sweep.js";
import { observeWindows } from "../../../../src/recommend/services/service-observations.js";

const named = { service: "orders", source: "a test" };
const startUs = 1_700_000_000_000_000;

function swept(requests: readonly (readonly [startMs: number, durationMs: number])[]) {
  const sweep = new RequestSweep();
  for (const [startMs, durationMs] of requests) {
    sweep.add({
      startUs: startUs + 1_000 * startMs,
      durationUs: 1_000 * durationMs,
      isError: false,
    });
  }
  return sweep.finish(named);
}

describe("RequestSweep", () => {
  test("counts the requests in flight when each begins, in any order of the log", () => {
    const requests = [0, 1, 2].map((startMs) => [startMs, 10 - startMs] as const);
    const alone = Array.from({ length: 5 }, (_, i) => [1_000 * (i + 1) + 1, 7] as const);
    const observed = swept([...alone, ...requests.toReversed()]);
    expect(observed).toMatchObject({ requestCount: 8, inFlightMax: 3, errorRatio: 0, notes: [] });
    // Five alone and the first of three; levels of one request each say nothing.
    expect(observed.curve).toMatchObject([{ level: 1, count: 6 }]);
  });

  test("counts one that begins when another ends as alone", () => {
    const inARow = Array.from({ length: 10 }, (_, i) => [5 * i + 1, 5] as const);
    expect(swept(inARow).inFlightMax).toBe(1);
  });

  test("has the quantiles of requests up to a level", () => {
    const quiet = Array.from({ length: 100 }, (_, i) => [1_000 * i + 1, i < 99 ? 10 : 90] as const);
    const busy = Array.from({ length: 50 }, () => [200_001, 500] as const);
    const { quantiles } = swept([...quiet, ...busy]);
    expect(quantiles(1)).toEqual({ p50: 10, p99: 90 });
    expect(quantiles(1_000)?.p99).toBe(500);
    expect(quantiles(0)).toBeUndefined();
  });

  test("draws no curve from whole seconds, and says what to log", () => {
    const observed = swept(Array.from({ length: 100 }, (_, i) => [1_000 * (i % 7), 20] as const));
    expect(observed.curve).toEqual([]);
    expect(observed.notes).toEqual([expect.stringContaining("%START_TIME%")]);
  });

  test("leaves out what is no duration, and says so", () => {
    const observed = swept([
      [1, Number.NaN],
      [1, -4],
      [1, 5],
    ]);
    expect(observed.requestCount).toBe(1);
    expect(observed.notes).toEqual([expect.stringContaining("2 requests were left out")]);
  });

  test("takes the peak of ten seconds", () => {
    const even = Array.from({ length: 600 }, (_, i) => [100 * i + 1, 5] as const);
    expect(swept(even).perSecondMax).toBeCloseTo(10, 1);
  });

  test("looks at a bounded number of requests", () => {
    const sweep = new RequestSweep(10_000);
    for (let i = 0; i < 10_003; i += 1) {
      sweep.add({ startUs: startUs + 10 * i, durationUs: 5, isError: false });
    }
    const observed = sweep.finish(named);
    expect(observed.requestCount).toBe(10_000);
    expect(observed.notes).toEqual([expect.stringContaining("3 requests were left out")]);
  });
});

describe("observeWindows()", () => {
  const at = { startMs: 0, lengthMs: 10_000 };

  test("completes what is missing by Little's law", () => {
    const both = [
      { ...at, perSecond: 100, latencyMs: 50 },
      { ...at, inFlight: 5, perSecond: 100 },
      { ...at, inFlight: 5, latencyMs: 50 },
    ];
    for (const window of both) {
      const observed = observeWindows(named, { windows: Array.from({ length: 5 }, () => window) });
      expect(observed).toMatchObject({ perSecondMax: 100, inFlightMax: 5, requestCount: 5_000 });
      expect(observed.curve).toMatchObject([{ level: 5, latencyMs: 50, count: 5 }]);
    }
  });

  test.each([
    { why: "nothing", window: {} },
    { why: "no requests", window: { perSecond: 0, latencyMs: 0 } },
    { why: "no latency", window: { perSecond: 4 } },
    { why: "NaN", window: { perSecond: 4, latencyMs: Number.NaN } },
    { why: "infinity", window: { perSecond: 4, latencyMs: Number.POSITIVE_INFINITY } },
  ])("leaves out a window with $why", ({ window }) => {
    const observed = observeWindows(named, { windows: [{ ...at, ...window }] });
    expect(observed).toMatchObject({ curve: [], requestCount: 0, durationSeconds: 0 });
    expect(observed.notes).toEqual(["1 of 1 steps had no requests."]);
  });

  test("has errors, quantiles and the limit of the windows that tell them", () => {
    const windows = [
      {
        ...at,
        perSecond: 10,
        latencyMs: 100,
        errorsPerSecond: 1,
        p50Ms: 80,
        p99Ms: 300,
        limit: 40,
      },
      { ...at, perSecond: 30, latencyMs: 100, p50Ms: 90, p99Ms: 400, limit: 0 },
    ];
    const observed = observeWindows(named, { windows });
    expect(observed).toMatchObject({ errorRatio: 0.1, limit: 40 });
    expect(observed.quantiles(1)).toEqual({ p50: 80, p99: 300 });
  });
});
