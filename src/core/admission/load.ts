import { DecayedMean } from "../collections/decayed-sum.js";
import { type HostReadings, hostReadingNames } from "./host-reading.js";
import type { OrcaReport } from "./orca.js";

/** Readings that make up a service's load, and the values that count as full. */
export interface LoadSettings {
  /** ORCA `cpu_utilization` (or `application_utilization`) that is a load of 1. */
  readonly orcaCpuRatio: number | undefined;
  /** ORCA `mem_utilization` that is a load of 1. */
  readonly orcaMemoryRatio: number | undefined;
  /** Ratio of upstream latency to its baseline that is a load of 1; undefined: not used. */
  readonly latencyMultiple: number | undefined;
  /** Share of failed requests that is a load of 1; undefined: not used. */
  readonly errorRatio: number | undefined;
  /** Time in the queue that is a load of 1; undefined: not used. */
  readonly queueWaitMs: number | undefined;
  /** Reading of the service's signal that is a load of 1; absent or undefined: not used. */
  readonly signalReading?: number | undefined;
  /** Readings of this replica's host that are a load of 1; absent: not used. */
  readonly host?: HostReadings | undefined;
  /** How readings are combined into one load. */
  readonly combine: "max" | "mean";
}

/** Signals that make up a service's load; also values of a metric's label. */
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

/** Time constant of the mean of readings, in milliseconds. */
const signalMemoryMs = 2_000;

/** How long a signal without new readings keeps its value, in milliseconds. */
export const signalHoldMs = 2_000;

/** Half-life of its value after that, in milliseconds. */
export const signalHalfLifeMs = 1_000;

/** A silent signal that has decayed to this share is not used any more. */
const silentShareMin = 0.01;

/** Minimum number of requests in an error ratio, so that one failure alone is no overload. */
export const errorCountMin = 10;

/** Memory in use counts from this far below its full ratio. */
const memoryRampRatio = 0.1;

/** Maximum load of one signal. */
export const loadRatioMax = 10;

/**
 * Converts the signals of a service to one scale, on which 1 is full, and combines them: by default
 * the largest counts, because a service fails at the first resource that runs out.
 *
 * - in-flight: over the limit
 * - latency: `(latency / baseline - 1) / (latencyMultiple - 1)`: 0 at the baseline
 * - errors: their share over `errorRatio`
 * - ORCA's CPU: utilization over `orcaCpuRatio`
 * - ORCA's memory: 0 up to `memoryRampRatio` below `orcaMemoryRatio`, then linear to 1. Memory is
 *   held, not used up: 70 % for weeks says nothing, so it must not cause refusals.
 * - queue wait: over `queueWaitMs`
 * - outside, host: as read, because they already are ratios
 *
 * A signal without new readings is forgotten after a while. All but in-flight, outside and host are
 * measured from admitted requests, so a full service would otherwise look full forever: no request
 * would be admitted to measure it again.
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

  /** Records the latency of a request. @param baselineMs latency without load, above 0 */
  latency(latencyMs: number, baselineMs: number, nowMs: number): void {
    const { latencyMultiple } = this.#settings;
    if (latencyMultiple === undefined || !(latencyMultiple > 1) || !(baselineMs > 0)) return;
    this.#latency.add((latencyMs / baselineMs - 1) / (latencyMultiple - 1), nowMs);
  }

  /** Records a request that the service did not fail. */
  succeeded(nowMs: number): void {
    this.#errors.add(0, nowMs);
  }

  /** Records a request that the service failed. */
  failed(nowMs: number): void {
    this.#errors.add(1, nowMs);
  }

  /** Records a response's report. The application's ratio takes precedence over the CPU's. */
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

  /** Records the wait of a request that left the queue; 0 if it found the queue empty. */
  queueWait(waitMs: number, nowMs: number): void {
    const { queueWaitMs } = this.#settings;
    if (queueWaitMs !== undefined) this.#queueWait.add(waitMs / queueWaitMs, nowMs);
  }

  /**
   * Records a reading from elsewhere, as a load. It replaces the previous one.
   *
   * @param holdMs how long it is valid without a new one: a few times the period of reading
   */
  outside(ratio: number, holdMs: number, nowMs: number): void {
    if (Number.isFinite(ratio)) this.#outside = { ratio, silence: { sinceMs: nowMs, holdMs } };
  }

  /** Records readings of this replica's host, as a load; see `outside`. */
  host(ratio: number, holdMs: number, nowMs: number): void {
    this.#host = { ratio, silence: { sinceMs: nowMs, holdMs } };
  }

  /**
   * Returns the load: 0 is idle, 1 is full, more is overload.
   *
   * @param inFlightRatio permits in use over the limit, without the request that asks
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

  /** Returns one signal on the same scale, at most `loadRatioMax`; undefined if it has no value. */
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
 * Converts readings of the host to a load, on a scale on which 1 is full: the largest counts.
 * Memory is held, not used up, so it counts from `memoryRampRatio` below its full ratio.
 *
 * Example: CPU at 0.45 of a full 0.9 and memory at 0.92 of a full 0.95: 0.5 and 0.7, so 0.7.
 *
 * @param full the readings that are a load of 1, above 0; absent ones are not used
 * @returns from 0 to `loadRatioMax`; undefined if none of them was read
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

/** Returns the load of memory. Memory is held, not used up: most of it says nothing. */
function memoryLoad(memoryRatio: number, fullRatio: number): number {
  return (memoryRatio - (fullRatio - memoryRampRatio)) / memoryRampRatio;
}

/** Start of a signal's silence, and how long the signal keeps its value nevertheless. */
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

/** Returns what is left of a reading after silence; undefined once it is not used any more. */
function faded(ratio: number, { sinceMs, holdMs }: Silence, nowMs: number): number | undefined {
  const overdueMs = nowMs - sinceMs - holdMs;
  if (overdueMs <= 0) return ratio;
  const keptShare = 0.5 ** (overdueMs / signalHalfLifeMs);
  return keptShare < silentShareMin ? undefined : ratio * keptShare;
}

/** Mean of a signal's readings, which decays if there are no new ones. */
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
