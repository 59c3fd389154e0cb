import type { TimelineCounts } from "../simulate/timeline.js";

/** Values that a given part of what was observed does not exceed. */
export interface Quantiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** Where a source counts hits by steps, and not requests. */
export interface DemandSteps {
  /** The length of a step. */
  readonly seconds: number;
  /** Sentences: what the source cannot tell. */
  readonly notes: readonly string[];
}

/** What the callers of one rule did. A caller is a bucket of the rule. */
export interface CallerDemand {
  readonly domain: string;
  /** The label of the rule. */
  readonly rule: string;
  /** Whether all requests share one bucket, so that there are no callers to tell apart. */
  readonly isShared: boolean;
  /**
   * Absent: every request is known. Otherwise hits stand for requests, and those of a step count at
   * its start, so figures of shorter windows mean nothing.
   */
  readonly steps?: DemandSteps;
  readonly requestCount: number;
  /** An estimate if callers were sampled. */
  readonly callerCount: number;
  /** Which part of the callers was looked at in detail; 1: all. Above 0. */
  readonly sampledRatio: number;
  readonly startUs: number;
  readonly endUs: number;
  /** Days of UTC with requests. */
  readonly dayCount: number;
  /** Requests over time; undefined: there was none. */
  readonly requests: TimelineCounts | undefined;
  /** Hits of a caller in its busiest second, minute, hour and whole day, over callers and days. */
  readonly busiest: Readonly<Record<"second" | "minute" | "hour" | "day", Quantiles>>;
  /** Part of all requests by hour of the day in UTC, from 0, and by day of the week from Monday. */
  readonly byHour: readonly number[];
  readonly byWeekday: readonly number[];
  /** Part of the requests that the most frequent callers sent: the first one, ten and hundred. */
  readonly topRatios: Readonly<Record<"top1" | "top10" | "top100", number>>;
  /** How fast the counts of callers fall with their rank. Undefined: too few callers. */
  readonly zipfExponent: number | undefined;
}
