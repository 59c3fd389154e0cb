import { describe, expect, it } from "vitest";
import type { ScenarioRate } from "../../../../src/policy/scenario/scenario-rate.js";
import { ArrivalTimes } from "../../../../src/simulate/engine/arrival-times.js";

const untilMs = 10_000;

function timesOf(
  rate: ScenarioRate,
  factors: readonly { fromMs: number; toMs: number; factor: number }[] = [],
) {
  const traces = new Map([["rates", [1, 0, 3]]]);
  const arrivals = new ArrivalTimes({ rate, traces, factors, untilMs });
  const times: number[] = [];
  for (let at = arrivals.next(1); Number.isFinite(at); at = arrivals.next(1)) times.push(at);
  return times;
}

function points(...each: readonly (readonly [atMs: number, perSecond: number])[]): ScenarioRate {
  const all = each.map(([atMs, perSecond]) => ({ atMs, perSecond }));
  return { kind: "points", points: all, periodMs: undefined };
}

describe("ArrivalTimes", () => {
  it("spreads a steady rate evenly", () => {
    expect(timesOf(points([0, 2])).slice(0, 3)).toEqual([500, 1_000, 1_500]);
  });

  it("inverts a ramp exactly: n requests are due at the root of n", () => {
    // From 0 to 2 a second in two seconds: t^2 / 2 requests after t seconds.
    const times = timesOf(points([0, 0], [2_000, 2], [2_000, 0]));
    expect(times).toEqual([expect.closeTo(1_000 * Math.SQRT2, 6), 2_000]);
  });

  it("follows steps, and passes over times without requests", () => {
    const steps = points([0, 0], [0, 1], [2_000, 1], [2_000, 0], [5_000, 0], [5_000, 1]);
    const times = timesOf(steps).map(Math.round);
    expect(times).toEqual([1_000, 2_000, 6_000, 7_000, 8_000, 9_000]);
  });

  it("repeats a period", () => {
    const rate: ScenarioRate = {
      kind: "points",
      points: [
        { atMs: 0, perSecond: 0 },
        { atMs: 500, perSecond: 4 },
        { atMs: 1_000, perSecond: 0 },
      ],
      periodMs: 1_000,
    };
    const times = timesOf(rate);
    expect(times.length).toBeGreaterThanOrEqual(19);
    expect((times[5] ?? 0) - (times[3] ?? 0)).toBeCloseTo(1_000, 6);
  });

  it("follows a trace, then keeps its last rate", () => {
    const times = timesOf({ kind: "trace", file: "rates", stepMs: 1_000 });
    expect(times.filter((ms) => ms > 1_001 && ms <= 2_000)).toEqual([]);
    expect(times.filter((ms) => ms > 5_000 && ms <= 6_000).length).toBe(3);
  });

  it("multiplies a rate for a while", () => {
    const times = timesOf(points([0, 1]), [{ fromMs: 4_000, toMs: 6_000, factor: 5 }]);
    expect(times.filter((ms) => ms > 4_000.001 && ms < 6_000.001).length).toBe(10);
  });
});
