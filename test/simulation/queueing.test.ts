import { describe, expect, it } from "vitest";
import { defaultGateSettings } from "../../src/core/admission/gate.js";
import type { QueueOrder } from "../../src/core/admission/request-queue.js";
import { mean, quantile } from "../support/station.js";
import { type Mmc, meanWait, waitProbability, waitQuantile } from "./erlang-c.js";
import { erlangFigures, runErlang, textStation, waitFigures } from "./erlang-run.js";
import { QueueRun, refusedCount } from "./queue-run.js";
import { hardCap, sigmoid, steepSigmoid, textOverload, twofold } from "./queue-scenarios.js";

/** One run each; `npm run bench -- --queueing 5000000` has the figures of more requests. */
const seeds = [1, 2, 3];

/** Parts of a run of the text's size each: 383,000 requests. */
const partCount = 40;

/** How many standard errors a figure may be off: one run in 16,000 is further by chance. */
const standardErrorsMax = 4;

/** A run of twenty minutes after it has found its level. */
function settled(...[scenario, seed]: ConstructorParameters<typeof QueueRun>): QueueRun {
  const run = new QueueRun(scenario, seed);
  run.span(300);
  run.forget();
  run.span(1_200);
  return run;
}

describe("Erlang's formula", () => {
  it("is that of M/M/1 where there is one server", () => {
    const station: Mmc = { serverCount: 1, arrivalsPerSecond: 0.5, servedPerSecond: 1 };
    expect(waitProbability(station)).toBeCloseTo(0.5, 12);
    expect(meanWait(station)).toBeCloseTo(1, 12);
    expect(waitQuantile(station, 0.9)).toBeCloseTo(2 * Math.log(5), 12);
    expect(waitQuantile(station, 0.4)).toBe(0);
  });

  it("is what tables have for ten servers", () => {
    expect(waitProbability(textStation)).toBeCloseTo(0.4092, 4);
    expect(meanWait(textStation)).toBeCloseTo(0.2046, 4);
  });
});

describe("a request queue in front of ten servers, at eight tenths of what they can do", () => {
  it.each(seeds)("makes requests wait as Erlang's formula says (seed %i)", (seed) => {
    const { whole, standardErrors } = runErlang(seed, partCount);
    const formula = erlangFigures(textStation);
    for (const figure of waitFigures) {
      const error = Math.abs(whole[figure] - formula[figure]);
      expect(error, figure).toBeLessThan(standardErrorsMax * standardErrors[figure]);
      // Or the bound above would say nothing.
      expect(standardErrors[figure] / formula[figure], figure).toBeLessThan(0.06);
    }
  });

  it("makes the text's sample one of those that this many requests give", () => {
    const { parts } = runErlang(1, 100);
    const sample = { mean: 0.179, p90: 0.629, p99: 1.584 };
    for (const figure of ["mean", "p90", "p99"] as const) {
      const values = parts.map((part) => part[figure]);
      // Within the middle 98 in 100.
      expect(sample[figure], figure).toBeGreaterThan(quantile(values, 0.01));
      expect(sample[figure], figure).toBeLessThan(quantile(values, 0.99));
    }
  });
});

describe("ten servers, and half as much again or twice as much as they can do", () => {
  it.each(seeds)("keep about 300 waiting behind a cap of 30 s (seed %i)", (seed) => {
    for (const arrivalsPerSecond of [15, 20]) {
      const { queueCounts } = settled(textOverload(arrivalsPerSecond, hardCap), seed);
      expect(mean(queueCounts), `${arrivalsPerSecond}/s`).toBeGreaterThan(280);
      expect(mean(queueCounts), `${arrivalsPerSecond}/s`).toBeLessThan(315);
    }
  });

  it.each(seeds)("keep 230 to 270 waiting behind the sigmoid (seed %i)", (seed) => {
    const { queueCounts } = settled(textOverload(15, sigmoid), seed);
    // Where as many pass as are served: 28 s - ln(2) / 0.23 = 25 s.
    expect(Math.abs(mean(queueCounts) - 250)).toBeLessThan(8);
    expect(quantile(queueCounts, 0.05)).toBeGreaterThan(222);
    expect(quantile(queueCounts, 0.95)).toBeLessThan(278);
  });

  it.each(seeds)("keep fewer waiting behind it than a cap does at less load (seed %i)", (seed) => {
    const curved = mean(settled(textOverload(20, sigmoid), seed).queueCounts);
    const capped = mean(settled(textOverload(15, hardCap), seed).queueCounts);
    // Where half pass: at the midpoint.
    expect(Math.abs(curved - 280)).toBeLessThan(8);
    expect(curved).toBeLessThan(capped);
  });

  it.each(seeds)("keep 230 to 270 at both rates behind a steeper one (seed %i)", (seed) => {
    for (const arrivalsPerSecond of [15, 20]) {
      const { queueCounts } = settled(textOverload(arrivalsPerSecond, steepSigmoid), seed);
      expect(mean(queueCounts), `${arrivalsPerSecond}/s`).toBeGreaterThan(230);
      expect(mean(queueCounts), `${arrivalsPerSecond}/s`).toBeLessThan(270);
    }
  });

  it("grow without end where nothing stops them", () => {
    const run = new QueueRun(textOverload(15, undefined), 1);
    run.span(1_200);
    expect(run.queueCounts.at(-1)).toBeGreaterThan(5_000);
  });
});

describe("a gate in front of the sigmoid", () => {
  function gated(arrivalsPerSecond: number) {
    return { ...textOverload(arrivalsPerSecond, sigmoid), gate: defaultGateSettings };
  }

  it.each(seeds)("makes most refusals cheap, and takes no work from servers (seed %i)", (seed) => {
    const { classes, queueCounts } = settled(gated(100), seed);
    const { refusedByCause, waitsMs } = classes.normal;
    const byGate = refusedByCause.get("gate") ?? 0;
    expect(byGate / refusedCount(classes.normal)).toBeGreaterThan(0.7);
    // Twenty minutes of ten servers; the queue is never empty, so they never stop.
    expect(waitsMs.length / 12_000).toBeGreaterThan(0.95);
    expect(Math.min(...queueCounts)).toBeGreaterThan(200);
    expect(Math.max(...queueCounts)).toBeLessThan(420);
  });

  it("holds a steadier state than one without hysteresis, at a hundred times the capacity", () => {
    const { gateStates } = settled(gated(1_000), 1);
    const changes = gateStates.filter((state, i) => i > 0 && state !== gateStates[i - 1]);
    // Of 1,200 looks. It is some 300, and 580 without hysteresis.
    expect(changes.length).toBeLessThan(400);
  });
});

describe("ten servers, and twice as much as they can do, a fifth of it critical", () => {
  it.each(seeds)("lose nothing critical by priority (seed %i)", (seed) => {
    for (const arrivals of ["poisson", "heavyTailed"] as const) {
      const run = new QueueRun(twofold({ arrivals }), seed);
      run.span(120);
      const { critical, high, normal, low } = run.classes;
      expect(refusedCount(critical), arrivals).toBe(0);
      expect(critical.arrivedCount).toBeGreaterThan(8_000);
      expect(quantile(critical.waitsMs, 0.99), arrivals).toBeLessThan(75);
      const ratios = [high, normal, low].map((one) => refusedCount(one) / one.arrivedCount);
      expect(ratios, arrivals).toEqual(ratios.toSorted((one, other) => one - other));
      expect(run.wronglyRefusedCount).toBe(0);
    }
  });

  // Arrivals alone make a run of heavy tails serve 96 to 100 %.
  it.each(["poisson", "heavyTailed"] as const)("are kept busy (%s)", (arrivals) => {
    const ratios = Array.from({ length: 20 }, (_, i) => {
      const run = new QueueRun(twofold({ arrivals }), i + 1);
      run.span(120);
      const served = Object.values(run.classes).reduce((sum, one) => sum + one.waitsMs.length, 0);
      return served / 120 / 200;
    });
    expect(mean(ratios)).toBeGreaterThan(0.975);
  });

  it.each(seeds)("lose some of a burst only where all who wait are critical (seed %i)", (seed) => {
    const run = new QueueRun(twofold({ arrivals: "bursty" }), seed);
    run.span(120);
    const { critical } = run.classes;
    expect(run.wronglyRefusedCount).toBe(0);
    expect(refusedCount(critical) / critical.arrivedCount).toBeLessThan(0.01);
  });

  it("lose half of everything without it", () => {
    const queue = { ...twofold().queue, order: "fifo" as const };
    const run = new QueueRun(twofold({ queue, shedAt: undefined }), 1);
    run.span(120);
    for (const counts of Object.values(run.classes)) {
      expect(Math.abs(refusedCount(counts) / counts.arrivedCount - 0.5)).toBeLessThan(0.03);
    }
  });
});

describe("callers who leave unseen after 150 ms, behind a queue of half a second", () => {
  /** Share of those who were let in while their caller was still there. */
  function inTime(order: QueueOrder): number {
    const queue = { sizeMax: 100, waitMsMax: 2_000, order, codel: undefined };
    const run = new QueueRun(twofold({ classRatios: {}, shedAt: undefined, queue }), 1);
    run.span(120);
    const { waitsMs } = run.classes.normal;
    return waitsMs.filter((waitMs) => waitMs <= 150).length / waitsMs.length;
  }

  it("are hardly ever served in time when the oldest goes first", () => {
    expect(inTime("fifo")).toBeLessThan(0.02);
  });

  it("are nearly always served in time when the newest goes first", () => {
    expect(inTime("newestFirstUnderOverload")).toBeGreaterThan(0.95);
  });
});
