/** Confidence interval of a number, from resamples of the observed days. */
export interface ConfidenceBand {
  readonly low: number;
  readonly high: number;
  /** Between 0 and 1, such as 0.9. */
  readonly level: number;
}

/** A proposed number, and its origin. */
export interface ProposedNumber {
  readonly value: number;
  /** The policy's current number; undefined: none. */
  readonly was: number | undefined;
  /** Undefined: not enough days. */
  readonly band: ConfidenceBand | undefined;
  /** One line, written as a comment next to the number in the policy. */
  readonly why: string;
}

/** Factor added to the observed need. */
export interface Headroom {
  /** From 1. */
  readonly factor: number;
  readonly why: string;
}

/** Requests of a rule that are refused, from a replay of the log or an estimate. */
export interface Refusals {
  readonly requestRatio: number;
  /** Without the requests of outliers. */
  readonly ordinaryRequestRatio: number;
  /** Part of the caller-day pairs with requests that have one refused. */
  readonly callerDayRatio: number;
  /** Sorted by refusals, most first; a bounded number. */
  readonly callers: readonly RefusedCaller[];
}

/** Prediction from all days except the last one, compared with the last one. */
export interface HeldOutCheck {
  /** Days since 1970. */
  readonly day: number;
  readonly fittedDayCount: number;
  /** Part of the callers that have a request refused on a day. */
  readonly predictedRatio: number;
  readonly actualRatio: number;
  /** What the last day needed divided by the prediction, minus 1. */
  readonly needError: number;
}

/** A caller that a proposed limit refuses. */
export interface RefusedCaller {
  /** Hashed, or in plain text if requested. */
  readonly name: string;
  readonly refusedCount: number;
  /** Whether it needs so much more than the others that the limit is meant to restrict it. */
  readonly isOutlier: boolean;
}

/** A proposed limit: `hits` in each period, and at most `burst` at once. */
export interface Proposal {
  readonly domain: string;
  /** The label of the rule. */
  readonly rule: string;
  /** Whether all requests share one bucket. */
  readonly isShared: boolean;
  /** Present if hits were counted in steps. `refusals` are then estimated, without a replay. */
  readonly stepSeconds?: number;
  /** The name of the limit, if it has one. */
  readonly limit: string | undefined;
  readonly hits: ProposedNumber;
  readonly burst: ProposedNumber;
  readonly periodSeconds: number;
  readonly headroom: Headroom;
  readonly refusals: Refusals;
  /** By rate: the burst that lets the fitted part of the callers pass, without headroom. */
  readonly curve: readonly { readonly hits: number; readonly burst: number }[];
  /** Undefined: not enough days. */
  readonly heldOut: HeldOutCheck | undefined;
  /** Sentences about how the numbers were chosen. */
  readonly reasons: readonly string[];
}
