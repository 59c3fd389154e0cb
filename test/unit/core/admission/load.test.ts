import { describe, expect, it } from "vitest";
import {
  errorCountMin,
  hostLoadRatio,
  type LoadSettings,
  LoadSignals,
  loadRatioMax,
  loadSignals,
  signalHalfLifeMs,
  signalHoldMs,
} from "../../../../src/core/admission/load.js";

const orcaNothing = {
  cpuRatio: undefined,
  memoryRatio: undefined,
  applicationRatio: undefined,
};

function signals(changes: Partial<LoadSettings> = {}): LoadSignals {
  return new LoadSignals({
    orcaCpuRatio: 0.85,
    orcaMemoryRatio: 0.9,
    latencyMultiple: 3,
    errorRatio: 0.5,
    queueWaitMs: 200,
    combine: "max",
    ...changes,
  });
}

/** What each signal but in-flight says. */
function reported(load: LoadSignals, nowMs: number): Readonly<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const signal of loadSignals) {
    const ratio = signal === "inFlight" ? undefined : load.signal(signal, nowMs);
    if (ratio !== undefined) found[signal] = Math.round(ratio * 1e6) / 1e6;
  }
  return found;
}

describe("LoadSignals", () => {
  it("is in-flight over the limit while nothing else is known", () => {
    const load = signals();
    expect(reported(load, 0)).toEqual({});
    expect(load.ratio(0, 0.6)).toBe(0.6);
    expect(signals({ combine: "mean" }).ratio(0, 0.6)).toBe(0.6);
  });

  it.each([
    { report: { cpuRatio: 0.85 }, is: { orcaCpu: 1 } },
    { report: { cpuRatio: 0.68 }, is: { orcaCpu: 0.8 } },
    { report: { cpuRatio: 0.68, applicationRatio: 0.17 }, is: { orcaCpu: 0.2 } },
    { report: { applicationRatio: 1.7 }, is: { orcaCpu: 2 } },
    { report: { memoryRatio: 0.9 }, is: { orcaMemory: 1 } },
    { report: { memoryRatio: 0.875 }, is: { orcaMemory: 0.75 } },
    { report: { memoryRatio: 0.7 }, is: { orcaMemory: 0 } },
    { report: { cpuRatio: 0.425, memoryRatio: 0.85 }, is: { orcaCpu: 0.5, orcaMemory: 0.5 } },
    { report: { cpuRatio: 100 }, is: { orcaCpu: loadRatioMax } },
    { report: {}, is: {} },
  ])("takes a report of $report for $is", ({ report, is }) => {
    const load = signals();
    load.orca({ ...orcaNothing, ...report }, 0);
    expect(reported(load, 0)).toEqual(is);
  });

  it.each([
    { latencyMs: 100, is: 0 },
    { latencyMs: 200, is: 0.5 },
    { latencyMs: 300, is: 1 },
    { latencyMs: 50, is: 0 },
  ])("takes $latencyMs ms over a baseline of 100 for $is", ({ latencyMs, is }) => {
    const load = signals();
    load.latency(latencyMs, 100, 0);
    expect(load.signal("latency", 0)).toBe(is);
  });

  it("weighs fast answers against slow ones, also below the baseline", () => {
    const load = signals();
    load.latency(300, 100, 0);
    load.latency(60, 100, 0);
    expect(load.signal("latency", 0)).toBeCloseTo((1 - 0.2) / 2, 9);
  });

  it("makes nothing of a baseline that is none", () => {
    const load = signals();
    load.latency(300, 0, 0);
    load.latency(300, Number.NaN, 0);
    expect(reported(load, 0)).toEqual({});
  });

  it("takes the share of failures, and few failures for little", () => {
    const load = signals();
    load.failed(0);
    expect(load.signal("errors", 0)).toBeCloseTo(2 / errorCountMin, 9);
    for (let i = 1; i < 50; i += 1) {
      load.failed(0);
      load.succeeded(0);
      load.succeeded(0);
      load.succeeded(0);
    }
    expect(load.signal("errors", 0)).toBeCloseTo(50 / 197 / 0.5, 9);
  });

  it("takes the wait in the queue, also of those who did not wait", () => {
    const load = signals();
    load.queueWait(300, 0);
    load.queueWait(0, 0);
    expect(load.signal("queueWait", 0)).toBe(0.75);
  });

  it("looks at nothing that the policy leaves out", () => {
    const load = signals({
      orcaCpuRatio: undefined,
      orcaMemoryRatio: undefined,
      latencyMultiple: undefined,
      errorRatio: undefined,
      queueWaitMs: undefined,
    });
    load.orca({ cpuRatio: 1, memoryRatio: 1, applicationRatio: 1 }, 0);
    load.latency(300, 100, 0);
    load.failed(0);
    load.queueWait(1_000, 0);
    expect(reported(load, 0)).toEqual({});
    expect(load.ratio(0, 0.1)).toBe(0.1);
  });

  it("is the fullest of all, or their mean", () => {
    for (const { combine, is } of [
      { combine: "max", is: 0.8 },
      { combine: "mean", is: 0.7 },
    ] as const) {
      const load = signals({ combine });
      load.orca({ ...orcaNothing, cpuRatio: 0.68 }, 0);
      expect(load.ratio(0, 0.6)).toBeCloseTo(is, 9);
    }
  });

  it("forgets a signal that has gone silent, and then leaves it out of the mean", () => {
    const load = signals({ combine: "mean" });
    load.orca({ ...orcaNothing, cpuRatio: 1.7 }, 1_000);
    const at = (silentMs: number) => load.signal("orcaCpu", 1_000 + silentMs);
    expect(at(signalHoldMs)).toBe(2);
    expect(at(signalHoldMs + signalHalfLifeMs)).toBe(1);
    expect(at(signalHoldMs + 3 * signalHalfLifeMs)).toBe(0.25);
    expect(at(signalHoldMs + 7 * signalHalfLifeMs)).toBeUndefined();
    expect(load.ratio(1_000, 0)).toBe(1);
    expect(load.ratio(60_000, 0.5)).toBe(0.5);
  });

  it("lets somebody in again to a service that was too full to be asked", () => {
    const load = signals();
    load.orca({ ...orcaNothing, cpuRatio: 8.5 }, 0);
    expect(load.ratio(0, 0)).toBe(10);
    let nowMs = 0;
    while (load.ratio(nowMs, 0) >= 0.75) nowMs += 100;
    expect(nowMs).toBeLessThan(6_000);
  });

  it("lets new readings replace old ones within its memory", () => {
    const load = signals();
    for (let nowMs = 0; nowMs <= 10_000; nowMs += 100) {
      load.orca({ ...orcaNothing, cpuRatio: nowMs < 4_000 ? 0.17 : 0.85 }, nowMs);
    }
    expect(load.signal("orcaCpu", 10_000)).toBeGreaterThan(0.94);
  });

  it("takes readings of the host as they are, beside those from outside", () => {
    const load = signals();
    load.outside(0.4, 15_000, 0);
    load.host(0.7, 3_000, 0);
    expect(reported(load, 3_000)).toEqual({ outside: 0.4, host: 0.7 });
    expect(load.signal("host", 3_000 + signalHalfLifeMs)).toBeCloseTo(0.35, 9);
    load.host(50, 3_000, 5_000);
    expect(load.signal("host", 5_000)).toBe(loadRatioMax);
  });

  it("takes a reading from outside as it is, for as long as its reader says", () => {
    const load = signals();
    load.outside(0.4, 15_000, 0);
    load.outside(0.7, 15_000, 5_000);
    expect(reported(load, 20_000)).toEqual({ outside: 0.7 });
    expect(load.signal("outside", 21_000)).toBeCloseTo(0.35, 9);
    load.outside(Number.NaN, 15_000, 21_000);
    expect(load.signal("outside", 21_000)).toBeCloseTo(0.35, 9);
    load.outside(-3, 15_000, 22_000);
    expect(load.signal("outside", 22_000)).toBe(0);
  });
});

describe("hostLoadRatio()", () => {
  const full = { cpu: 0.9, memory: 0.95, eventLoopDelay: 100 };

  it.each([
    { readings: { cpu: 0.45 }, is: 0.5 },
    { readings: { cpu: 0.45, memory: 0.92 }, is: 0.7 },
    { readings: { cpu: 0.45, memory: 0.3, eventLoopDelay: 60 }, is: 0.6 },
    { readings: { memory: 0.3 }, is: 0 },
    { readings: { eventLoopDelay: 1e9 }, is: loadRatioMax },
    { readings: { runQueue: 5 }, is: undefined },
    { readings: {}, is: undefined },
  ])("takes $readings for $is", ({ readings, is }) => {
    const ratio = hostLoadRatio(readings, full);
    if (is === undefined) expect(ratio).toBeUndefined();
    else expect(ratio).toBeCloseTo(is, 9);
  });

  it("looks at nothing where nothing is full", () => {
    expect(hostLoadRatio({ cpu: 1, memory: 1 }, {})).toBeUndefined();
  });
});
