/** How an admitted request ended, as a concurrency algorithm sees it. */
export type SampleOutcome =
  /** It was served. */
  | "success"
  /** It says nothing about capacity: it was cancelled early, or refused for other reasons. */
  | "ignore"
  /** The service did not serve it in time, or reported that it could not. */
  | "dropped";

/** Measurement of one admitted request. */
export interface ConcurrencySample {
  /** Monotonic time at which it got its permit, in milliseconds. */
  readonly startMs: number;
  /** Monotonic time of the release. */
  readonly endMs: number;
  /** Permits in use right after it got its own, including that one. At least 1. */
  readonly inFlight: number;
  /** Its place in the queue on arrival, or `inFlight` if there was no queue. At least 1. */
  readonly position: number;
  readonly outcome: SampleOutcome;
  /**
   * Whether its caller left without a response, so that it takes longer. `outcome` is "dropped" at
   * its stated deadline, "ignore" without one. Default false
   */
  readonly isLeft?: boolean;
  /** Demand for the service at that time. Default: not known */
  readonly demand?: Demand;
}

/** Demand for a service, relative to its throughput. */
export interface Demand {
  /** Recent arrivals divided by recent completions. Undefined until a request has ended. */
  readonly loadRatio: number | undefined;
  /** Recent critical arrivals divided by all recent completions. Infinity until one has ended. */
  readonly criticalRatio: number;
  /** Requests that wait for a permit now. Default 0 */
  readonly waitingCount?: number;
}

/** Measurement of all requests that ended in a period, of one process or of a fleet. */
export interface WindowedSample {
  /** Mean or percentile of the latency of served requests. Undefined if none was served. */
  readonly rttMs: number | undefined;
  /** How many were served. */
  readonly sampleCount: number;
  /** How many were dropped. */
  readonly droppedCount: number;
  /** Maximum number of permits in use when one of them got its own. */
  readonly inFlightMax: number;
  /** Requests served per millisecond. Undefined if the length of the period is not known. */
  readonly servedPerMs: number | undefined;
  /** Permits that no measurement may take away, at least 0. Default 0. */
  readonly keptCount?: number;
  /** Whether so many permits are out of reach that a lower limit shows no effect. Default false. */
  readonly isPartial?: boolean;
  /** Monotonic time at which the period ended, in milliseconds. */
  readonly endMs: number;
}

/** A reading of a signal, or the bound that applies while there is none. */
export type SignalReading = number | "min" | "max";

/**
 * An algorithm for how many requests a service can take at once. It learns from samples, or from
 * readings of a signal. It reads no clock and starts nothing. Samples arrive in order of `endMs`.
 *
 * An object learns either through `record` or through `update`, never through both.
 */
export interface ConcurrencyLimit {
  /** Maximum permits in use, a whole number from 1. For `window`: maximum places in the queue. */
  readonly limit: number;
  /** How long a request takes without queueing, in milliseconds. Default: not known */
  readonly baselineMs?: number | undefined;
  /** The limit without the brief reduction for a measurement. Default: `limit` */
  readonly steadyLimit?: number;
  /**
   * Maximum permits in use for critical requests alone. It exceeds the limit by what may arrive at
   * once by chance, and most measurements do not lower it. Default: the limit with headroom
   */
  readonly criticalLimit?: number;
  /** Permits that keep the service busy. Below them no request is shed. Default: not known, 0 */
  readonly busyCount?: number;
  /** Continues from a limit that other replicas learned, unless it has learned one itself. */
  startFrom?(limit: number): void;
  /** Returns the part of requests to refuse at random now, 0 to 0.9. Only `latencyShed` has it. */
  shedRatio?(nowMs: number): number;
  /** Learns from a request that ended. */
  record(sample: ConcurrencySample): void;
  /** Learns from a window of many requests, such as those of a fleet. */
  update(window: WindowedSample): void;
  /**
   * Learns from a reading of a signal, or that there is none. Only `signal` has it.
   *
   * @param nowMs monotonic
   */
  read?(reading: SignalReading, nowMs: number): void;
  /** Returns current estimates, for metrics and people. Names are in camelCase with units. */
  facts(): Readonly<Record<string, number>>;
}

/**
 * Returns the permits that independent requests occasionally need, for a mean number in use: three
 * standard deviations of a Poisson distribution more. About one sample in a thousand is higher.
 *
 * Example: a mean of 16 needs 28.
 */
export function withHeadroom(meanCount: number): number {
  return meanCount + 3 * Math.sqrt(meanCount);
}
