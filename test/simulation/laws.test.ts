import { describe, expect, it } from "vitest";
import { FixedLimit } from "../../src/core/concurrency/fixed-limit.js";
import { WindowLimit } from "../../src/core/concurrency/window-limit.js";
import { LawRun, type LawScenario } from "./law-run.js";
import { halved, lawOf, overload } from "./law-scenarios.js";
import { runWindow } from "./window-run.js";

/** One run each; `npm run bench -- --laws 20` has the figures of many. */
const seeds = [1, 2, 3];

const minuteMs = 60_000;

/** The longest that one in a hundred of the served may take, of services of 50 ms in the mean. */
const p99MsMax = 400;

function runOf(scenario: LawScenario, seed: number): LawRun {
  return new LawRun(scenario, seed);
}

describe.each(["gradient", "vegas"] as const)("%s, at three times the capacity", (law) => {
  it.each(seeds)(
    "serves nine tenths of it from limits too low and too high on (seed %i)",
    (seed) => {
      for (const initial of [1, 1_000]) {
        const run = runOf(overload(lawOf(law, { initial })), seed);
        run.span(minuteMs / 2);
        const { goodputRatio, p99Ms, lateCount } = run.span(minuteMs);
        expect(goodputRatio, `from ${initial}`).toBeGreaterThanOrEqual(0.9);
        expect(p99Ms, `from ${initial}`).toBeLessThanOrEqual(p99MsMax);
        expect(lateCount, `from ${initial}`).toBe(0);
      }
    },
  );

  it.each(seeds)("does so where work goes on for clients who have left (seed %i)", (seed) => {
    const scenario = overload(lawOf(law, { initial: 1_000 }), { afterLeaving: "goesOn" });
    const run = runOf(scenario, seed);
    run.span(minuteMs);
    const { goodputRatio, p99Ms, lateCount } = run.span(minuteMs);
    expect(goodputRatio).toBeGreaterThanOrEqual(0.9);
    expect(p99Ms).toBeLessThanOrEqual(p99MsMax);
    expect(lateCount).toBe(0);
  });

  it.each(seeds)(
    "recovers when half of the servers go, and when they come back (seed %i)",
    (seed) => {
      const changes = halved("servers", { fromMs: minuteMs, toMs: 2 * minuteMs });
      const run = runOf(overload(lawOf(law), { changes }), seed);
      run.span(minuteMs + 15_000);
      const half = run.span(45_000);
      run.span(15_000);
      const whole = run.span(45_000);
      expect(half.goodputRatio).toBeGreaterThanOrEqual(0.9);
      expect(half.p99Ms).toBeLessThanOrEqual(p99MsMax);
      expect(whole.goodputRatio).toBeGreaterThanOrEqual(0.9);
      expect(whole.p99Ms).toBeLessThanOrEqual(p99MsMax);
    },
  );

  it.each(seeds)("learns the latency of a release that is slower by half (seed %i)", (seed) => {
    const changes = halved("service", { fromMs: minuteMs, toMs: 10 * minuteMs });
    const run = runOf(overload(lawOf(law), { changes }), seed);
    run.span(2 * minuteMs);
    const { goodputRatio, p99Ms } = run.span(2 * minuteMs);
    const { minRttMs } = run.law.facts();
    expect(minRttMs).toBeGreaterThan(70);
    expect(minRttMs).toBeLessThan(130);
    expect(goodputRatio).toBeGreaterThanOrEqual(0.9);
    expect(p99Ms).toBeLessThanOrEqual(2 * p99MsMax);
  });

  it.each(["fixed", "heavyTailed"] as const)(
    "does so with service times that are %s",
    (service) => {
      const run = runOf(overload(lawOf(law), { service }), 1);
      run.span(minuteMs / 2);
      const { goodputRatio, p99Ms } = run.span(minuteMs);
      expect(goodputRatio).toBeGreaterThanOrEqual(0.9);
      expect(p99Ms).toBeLessThanOrEqual(p99MsMax);
    },
  );

  it("does so with arrivals whose gaps are heavy-tailed", () => {
    const run = runOf(overload(lawOf(law), { arrivals: "heavyTailed" }), 1);
    run.span(minuteMs / 2);
    const { goodputRatio, p99Ms } = run.span(minuteMs);
    expect(goodputRatio).toBeGreaterThanOrEqual(0.9);
    expect(p99Ms).toBeLessThanOrEqual(p99MsMax);
  });

  it("serves bursts about as well as a fixed limit of its mean size", () => {
    const run = runOf(overload(lawOf(law), { arrivals: "bursty" }), 1);
    run.span(minuteMs / 2);
    const { goodputRatio, limits } = run.span(minuteMs);
    const max = Math.round(limits.reduce((sum, limit) => sum + limit, 0) / limits.length);
    const law2 = { law: "fixed", limits: { initial: 1, min: 1, max } } as const;
    const fixed = runOf(overload(law2, { arrivals: "bursty" }), 1);
    fixed.span(minuteMs / 2);
    expect(goodputRatio).toBeGreaterThanOrEqual(0.9 * fixed.span(minuteMs).goodputRatio);
  });

  it("refuses next to nobody below the capacity", () => {
    const run = runOf(overload(lawOf(law), { loadRatio: 0.7 }), 1);
    run.span(minuteMs / 2);
    const { servedCount, refusedCount } = run.span(2 * minuteMs);
    expect(refusedCount).toBeLessThanOrEqual(0.02 * servedCount);
  });
});

describe("gradient2, as published, at three times the capacity", () => {
  it.each([1, 2])("takes the queue for normal, and ends at its maximum (seed %i)", (seed) => {
    const bounds = { initial: 20, min: 20, max: 200 };
    const run = runOf(overload(lawOf("gradient2", bounds), { patienceMs: 5_000 }), seed);
    const early = run.span(minuteMs);
    run.span(24 * minuteMs);
    const late = run.span(minuteMs);
    expect(early.limits.at(-1)).toBeLessThan(60);
    expect(late.limits.every((limit) => limit === 200)).toBe(true);
    // All that it admits waits for the whole queue: 200 permits at 200 requests a second.
    expect(late.p50Ms).toBeGreaterThan(900);
  });
});

describe("aimd, at three times the capacity", () => {
  it.each([500, 1_000, 2_000])(
    "makes everybody wait as long as clients do: %i ms",
    (patienceMs) => {
      const run = runOf(overload(lawOf("aimd"), { patienceMs }), 1);
      run.span(minuteMs);
      const { p50Ms, goodputRatio, lateCount, servedCount } = run.span(minuteMs);
      expect(p50Ms).toBeGreaterThan(0.9 * patienceMs);
      expect(goodputRatio).toBeGreaterThan(0.95);
      expect(lateCount).toBeGreaterThan(0.5 * servedCount);
    },
  );

  it("loses half of the capacity where work goes on for clients who have left", () => {
    const run = runOf(overload(lawOf("aimd"), { afterLeaving: "goesOn" }), 1);
    run.span(minuteMs);
    expect(run.span(minuteMs).goodputRatio).toBeLessThan(0.5);
  });
});

/** About the numbers of the text: 208 pieces of work in 5 s, a hundred times what can be done. */
const flood = {
  serviceMs: 24,
  patienceMs: 5_000,
  loadRatio: 100,
  lengthMs: 400_000,
  warmUpMs: 150_000,
} as const;

describe("window, in the overload of the OpenZiti text", () => {
  it.each(seeds)("stays within a tenth and works for the living (seed %i)", (seed) => {
    const law = new WindowLimit({ initial: 50, min: 10, max: 1_000 });
    const report = runWindow({ ...flood, law, spreadRatio: 0.1 }, seed);
    expect(report.windowMax).toBeLessThanOrEqual(1.1 * report.windowMean);
    expect(report.windowMin).toBeGreaterThanOrEqual(0.9 * report.windowMean);
    // The text has 147 late of 4,628: one in 31.
    expect(30 * report.lateCount).toBeLessThanOrEqual(report.completedCount + report.lateCount);
    expect(report.goodputRatio).toBeGreaterThan(0.95);
  });

  it("does better where work differs more, since places then tell less of time", () => {
    const law = new WindowLimit({ initial: 50, min: 10, max: 1_000 });
    const report = runWindow({ ...flood, law, spreadRatio: 0.5 }, 1);
    expect(50 * report.lateCount).toBeLessThanOrEqual(report.completedCount + report.lateCount);
  });

  it("is what keeps it alive: with 1,000 places all work is for nobody", () => {
    const law = new FixedLimit({ initial: 1, min: 1, max: 1_000 });
    const report = runWindow({ ...flood, law, spreadRatio: 0.1 }, 1);
    expect(report.goodputRatio).toBe(0);
  });
});
