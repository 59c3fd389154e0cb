/** How one admitted request ended, as a concurrency law sees it. */
export type SampleOutcome =
  /** It was served. */
  | "success"
  /** It says nothing of what the service can take: cancelled early, refused for other reasons. */
  | "ignore"
  /** The service did not serve it in time, or said that it cannot. */
  | "dropped";

/** What one admitted request taught. */
export interface ConcurrencySample {
  /** Monotonic time of the permit, in milliseconds. */
  readonly startMs: number;
  /** Monotonic time of the release. */
  readonly endMs: number;
  /** Permits in use right after it got its own, itself included: from 1. */
  readonly inFlight: number;
  /** Its place in the queue when it came, or `inFlight` where there was no queue: from 1. */
  readonly position: number;
  readonly outcome: SampleOutcome;
  /**
   * Whether its caller left unanswered: it takes longer. "dropped" at the deadline that it stated,
   * "ignore" without one. Default false
   */
  readonly isLeft?: boolean;
  /** What is asked of the service at that time. Default: not known */
  readonly demand?: Demand;
}

/** What is asked of a service, next to what it does. */
export interface Demand {
  /** Requests that asked lately, over those that ended; undefined before any has. */
  readonly loadRatio: number | undefined;
  /** Critical requests that asked lately, over all that ended; Infinity before any has. */
  readonly criticalRatio: number;
  /** Requests that wait for a permit now. Default 0 */
  readonly waitingCount?: number;
}

/** What many requests that ended in one span of time taught, of one process or of a fleet. */
export interface WindowedSample {
  /** Mean or percentile of those that were served; undefined where none was. */
  readonly rttMs: number | undefined;
  /** How many were served. */
  readonly sampleCount: number;
  /** How many were dropped. */
  readonly droppedCount: number;
  /** The most permits in use when one of them got its own. */
  readonly inFlightMax: number;
  /** Requests that were served in a millisecond; undefined where nobody counted the time. */
  readonly servedPerMs: number | undefined;
  /** Permits that no measurement takes away: from 0. Default 0. */
  readonly keptCount?: number;
  /** Whether many of those permits are where a lower limit would not be heard of. Default false. */
  readonly isPartial?: boolean;
  /** Monotonic time at which it ended, in milliseconds. */
  readonly endMs: number;
}

/** A reading from elsewhere, or the bound that holds while there is none. */
export type SignalReading = number | "min" | "max";

/**
 * A law for how many requests a service can take at once. It learns from samples, or from readings
 * of something else; it reads no clock and starts nothing. Samples arrive in the order of `endMs`.
 *
 * One object is taught either by `record` or by `update`, never by both.
 */
export interface ConcurrencyLimit {
  /** Permits that may be in use, a whole number from 1; of `window` the places in the queue. */
  readonly limit: number;
  /** How long a request takes without queueing, in milliseconds. Default: not known */
  readonly baselineMs?: number | undefined;
  /** The limit without what a measurement takes away for a moment. Default: `limit` */
  readonly steadyLimit?: number;
  /**
   * Permits that critical requests alone may have in use: above the limit by what chance brings at
   * once, and not lowered where the limit is for the sake of a measurement. Default: with headroom
   */
  readonly criticalLimit?: number;
  /** Permits that keep the service busy: below them nobody is shed. Default: not known, 0 */
  readonly busyCount?: number;
  /** Goes on from what other replicas have learned, unless it has learned something itself. */
  startFrom?(limit: number): void;
  /** The share of requests to refuse at random now, 0 to 0.9; only `latencyShed` has one. */
  shedRatio?(nowMs: number): number;
  /** Learns from a request that ended. */
  record(sample: ConcurrencySample): void;
  /** Learns from many at once, as a fleet adds them up. */
  update(window: WindowedSample): void;
  /**
   * Learns from a reading from elsewhere, or that there is none; only `signal` does.
   *
   * @param nowMs monotonic
   */
  read?(reading: SignalReading, nowMs: number): void;
  /** What the law believes, for metrics and people; names in camelCase with units. */
  facts(): Readonly<Record<string, number>>;
}

/**
 * Permits that so many in the mean need now and then, when they come independently: three standard
 * deviations more, of a Poisson number. About one look in a thousand finds more.
 *
 * Example: 16 in the mean need 28.
 */
export function withHeadroom(meanCount: number): number {
  return meanCount + 3 * Math.sqrt(meanCount);
}
