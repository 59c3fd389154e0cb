import type { TimelineCounts } from "../simulate/timeline.js";

/** Values that a given part of the observations does not exceed. */
export interface Quantiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** Describes a source that counts hits in steps of time instead of requests. */
export interface DemandSteps {
  /** Length of a step. */
  readonly seconds: number;
  /** Sentences about what the source does not show. */
  readonly notes: readonly string[];
}

/** Requests of the callers of one rule. A caller is a bucket of the rule. */
export interface CallerDemand {
  readonly domain: string;
  /** The label of the rule. */
  readonly rule: string;
  /** Whether all requests share one bucket, so that callers cannot be distinguished. */
  readonly isShared: boolean;
  /**
   * Absent: every request is known. Otherwise hits count as requests, and the hits of a step count
   * at its start, so figures of shorter windows mean nothing.
   */
  readonly steps?: DemandSteps;
  readonly requestCount: number;
  /** An estimate if callers were sampled. */
  readonly callerCount: number;
  /** Part of the callers that was observed in detail; 1: all. Above 0. */
  readonly sampledRatio: number;
  readonly startUs: number;
  readonly endUs: number;
  /** Number of days in UTC with requests. */
  readonly dayCount: number;
  /** Requests over time; undefined: there were none. */
  readonly requests: TimelineCounts | undefined;
  /** Hits of a caller in its busiest second, minute, hour and day, over callers and days. */
  readonly busiest: Readonly<Record<"second" | "minute" | "hour" | "day", Quantiles>>;
  /** Parts of all requests by hour of the day in UTC, from 0, and by weekday, from Monday. */
  readonly byHour: readonly number[];
  readonly byWeekday: readonly number[];
  /** Parts of the requests that the most frequent caller, 10 and 100 callers sent. */
  readonly topRatios: Readonly<Record<"top1" | "top10" | "top100", number>>;
  /** How fast the counts of callers fall with their rank. Undefined: too few callers. */
  readonly zipfExponent: number | undefined;
}
