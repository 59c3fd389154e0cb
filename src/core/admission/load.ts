import { DecayedMean } from "../collections/decayed-sum.js";
import { type HostReadings, hostReadingNames } from "./host-reading.js";
import type { OrcaReport } from "./orca.js";

/** Which readings make a service's load, and from where they count as full. */
export interface LoadSettings {
  /** ORCA `cpu_utilization` (or `application_utilization`) that is a load of 1. */
  readonly orcaCpuRatio: number | undefined;
  /** ORCA `mem_utilization` that is a load of 1. */
  readonly orcaMemoryRatio: number | undefined;
  /** Upstream latency over its baseline that is a load of 1; undefined: not looked at. */
  readonly latencyMultiple: number | undefined;
  /** Share of failed requests that is a load of 1; undefined: not looked at. */
  readonly errorRatio: number | undefined;
  /** Time in the queue that is a load of 1; undefined: not looked at. */
  readonly queueWaitMs: number | undefined;
  /** Reading of the service's signal that is a load of 1; left out or undefined: not looked at. */
  readonly signalReading?: number | undefined;
  /** Readings of this replica's host that are a load of 1; left out: not looked at. */
  readonly host?: HostReadings | undefined;
  /** How readings become one load. */
  readonly combine: "max" | "mean";
}

/** What a service's load is made of; also a metric's label. */
export const loadSignals = [
  "inFlight",
  "latency",
  "errors",
  "orcaCpu",
  "orcaMemory",
  "queueWait",
  "outside",
  "host",
] as const;

type LoadSignal = (typeof loadSignals)[number];

/** Over which time readings are averaged: the time constant, in milliseconds. */
const signalMemoryMs = 2_000;

/** How long a signal that has gone silent still holds, in milliseconds. */
export const signalHoldMs = 2_000;

/** In which time it then halves, in milliseconds. */
export const signalHalfLifeMs = 1_000;

/** A silent signal that has decayed to this share says nothing any more. */
const silentShareMin = 0.01;

/** Requests that an error ratio is taken of at least, so that one failure alone is no overload. */
export const errorCountMin = 10;

/** Memory in use counts from so far below where it is full. */
const memoryRampRatio = 0.1;

/** The largest load that one signal may make. */
export const loadRatioMax = 10;

/**
 * Puts what is known of a service on one scale, on which 1 is full, and combines it: by default the
 * fullest counts, since a service is stopped by whatever it runs out of first.
 *
 * - in-flight: over the limit
 * - latency: `(latency / baseline - 1) / (latencyMultiple - 1)`: 0 at the baseline
 * - errors: their share over `errorRatio`
 * - ORCA's CPU: utilization over `orcaCpuRatio`
 * - ORCA's memory: 0 up to `memoryRampRatio` below `orcaMemoryRatio`, then a straight line to 1.
 *   Memory is held rather than used up: 70 % for weeks says nothing, so it must not shed anybody.
 * - queue wait: over `queueWaitMs`
 * - outside, host: as they were read, already ratios
 *
 * Every signal but in-flight is learnt from requests that were let in. One that falls silent is
 * therefore forgotten after a while: or a full service would stay full in our view for ever,
 * since nobody is let in to find out.
 *
 * Example: 30 of 50 in flight, CPU at 0.68 of 0.85: 0.6 and 0.8, so 0.8 ("max") or 0.7 ("mean").
 */
export class LoadSignals {
  readonly #settings: LoadSettings;
  readonly #latency = new AveragedSignal();
  readonly #errors = new AveragedSignal();
  readonly #cpu = new AveragedSignal();
  readonly #memory = new AveragedSignal();
  readonly #queueWait = new AveragedSignal();
  #outside: TimedRatio | undefined;
  #host: TimedRatio | undefined;

  constructor(settings: LoadSettings) {
    this.#settings = settings;
  }

  /** A request took so long. @param baselineMs what one takes without load, above 0 */
  latency(latencyMs: number, baselineMs: number, nowMs: number): void {
    const { latencyMultiple } = this.#settings;
    if (latencyMultiple === undefined || !(latencyMultiple > 1) || !(baselineMs > 0)) return;
    this.#latency.add((latencyMs / baselineMs - 1) / (latencyMultiple - 1), nowMs);
  }

  /** A request went well, as far as the service's health goes. */
  succeeded(nowMs: number): void {
    this.#errors.add(0, nowMs);
  }

  /** The service failed a request. */
  failed(nowMs: number): void {
    this.#errors.add(1, nowMs);
  }

  /** A response brought a report. The application's own measure goes before the CPU's. */
  orca(report: OrcaReport, nowMs: number): void {
    const { orcaCpuRatio, orcaMemoryRatio } = this.#settings;
    const usedRatio = report.applicationRatio ?? report.cpuRatio;
    if (orcaCpuRatio !== undefined && usedRatio !== undefined) {
      this.#cpu.add(usedRatio / orcaCpuRatio, nowMs);
    }
    if (orcaMemoryRatio !== undefined && report.memoryRatio !== undefined) {
      this.#memory.add(memoryLoad(report.memoryRatio, orcaMemoryRatio), nowMs);
    }
  }

  /** A request left the queue, or found it empty: then 0. */
  queueWait(waitMs: number, nowMs: number): void {
    const { queueWaitMs } = this.#settings;
    if (queueWaitMs !== undefined) this.#queueWait.add(waitMs / queueWaitMs, nowMs);
  }

  /**
   * A reading from elsewhere, as a load. It replaces the one before.
   *
   * @param holdMs how long it holds without a next one: a few times the period of reading
   */
  outside(ratio: number, holdMs: number, nowMs: number): void {
    if (Number.isFinite(ratio)) this.#outside = { ratio, silence: { sinceMs: nowMs, holdMs } };
  }

  /** Readings of this replica's host, as a load; see `outside`. */
  host(ratio: number, holdMs: number, nowMs: number): void {
    this.#host = { ratio, silence: { sinceMs: nowMs, holdMs } };
  }

  /**
   * The load: 0 is idle, 1 is full, more is too much.
   *
   * @param inFlightRatio permits in use over the limit, before the request that asks
   */
  ratio(nowMs: number, inFlightRatio: number): number {
    let largest = 0;
    let sum = 0;
    let count = 0;
    for (const signal of loadSignals) {
      const ratio = signal === "inFlight" ? inFlightRatio : this.signal(signal, nowMs);
      if (ratio === undefined) continue;
      largest = Math.max(largest, ratio);
      sum += ratio;
      count += 1;
    }
    return this.#settings.combine === "max" ? largest : sum / count;
  }

  /** One signal on the same scale, up to `loadRatioMax`; undefined where it says nothing. */
  signal(signal: Exclude<LoadSignal, "inFlight">, nowMs: number): number | undefined {
    const ratio = this.#unbounded(signal, nowMs);
    return ratio === undefined ? undefined : Math.min(loadRatioMax, Math.max(0, ratio));
  }

  #unbounded(signal: Exclude<LoadSignal, "inFlight">, nowMs: number): number | undefined {
    switch (signal) {
      case "latency":
        return this.#latency.at(nowMs);
      case "errors":
        return this.#errorLoad(nowMs);
      case "orcaCpu":
        return this.#cpu.at(nowMs);
      case "orcaMemory":
        return this.#memory.at(nowMs);
      case "queueWait":
        return this.#queueWait.at(nowMs);
      case "outside":
        return fadedOf(this.#outside, nowMs);
      case "host":
        return fadedOf(this.#host, nowMs);
    }
  }

  #errorLoad(nowMs: number): number | undefined {
    const { errorRatio } = this.#settings;
    const share = this.#errors.at(nowMs);
    if (errorRatio === undefined || share === undefined) return undefined;
    const weight = this.#errors.weight(nowMs);
    return (share * Math.min(1, weight / errorCountMin)) / errorRatio;
  }
}

/**
 * What readings make as a load, on a scale on which 1 is full: the fullest counts. Memory is held
 * rather than used up, so it counts from `memoryRampRatio` below where it is full.
 *
 * Example: CPU at 0.45 of a full 0.9 and memory at 0.92 of a full 0.95: 0.5 and 0.7, so 0.7.
 *
 * @param full the readings that are a load of 1, above 0; those left out are not looked at
 * @returns from 0 to `loadRatioMax`; undefined where none of them was read
 */
export function hostLoadRatio(readings: HostReadings, full: HostReadings): number | undefined {
  let largest: number | undefined;
  for (const name of hostReadingNames) {
    const [reading, fullAt] = [readings[name], full[name]];
    if (reading === undefined || fullAt === undefined) continue;
    const ratio = name === "memory" ? memoryLoad(reading, fullAt) : reading / fullAt;
    largest = Math.max(largest ?? 0, Math.min(loadRatioMax, ratio));
  }
  return largest;
}

/** Memory is held rather than used up: most of it says nothing. */
function memoryLoad(memoryRatio: number, fullRatio: number): number {
  return (memoryRatio - (fullRatio - memoryRampRatio)) / memoryRampRatio;
}

/** Since when a signal is silent, and how long it holds all the same. */
interface Silence {
  readonly sinceMs: number;
  readonly holdMs: number;
}

interface TimedRatio {
  readonly ratio: number;
  readonly silence: Silence;
}

function fadedOf(known: TimedRatio | undefined, nowMs: number): number | undefined {
  return known && faded(known.ratio, known.silence, nowMs);
}

/** What is left of a reading after silence; undefined once it says nothing any more. */
function faded(ratio: number, { sinceMs, holdMs }: Silence, nowMs: number): number | undefined {
  const overdueMs = nowMs - sinceMs - holdMs;
  if (overdueMs <= 0) return ratio;
  const keptShare = 0.5 ** (overdueMs / signalHalfLifeMs);
  return keptShare < silentShareMin ? undefined : ratio * keptShare;
}

/** The mean of a signal's readings, which fades when there are no new ones. */
class AveragedSignal {
  readonly #mean = new DecayedMean(signalMemoryMs);
  #lastMs = Number.NEGATIVE_INFINITY;

  add(reading: number, nowMs: number): void {
    this.#mean.add(reading, nowMs);
    this.#lastMs = nowMs;
  }

  at(nowMs: number): number | undefined {
    const { mean } = this.#mean;
    if (mean === undefined) return undefined;
    return faded(mean, { sinceMs: this.#lastMs, holdMs: signalHoldMs }, nowMs);
  }

  weight(nowMs: number): number {
    return this.#mean.weight(nowMs);
  }
}
