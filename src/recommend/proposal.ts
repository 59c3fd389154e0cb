/** The interval of a number between resamples of what was observed. */
export interface ConfidenceBand {
  readonly low: number;
  readonly high: number;
  /** Between 0 and 1, such as 0.9. */
  readonly level: number;
}

/** A number that is proposed, and where it came from. */
export interface ProposedNumber {
  readonly value: number;
  /** What the policy says now; undefined: nothing. */
  readonly was: number | undefined;
  /** Undefined: not enough days to tell. */
  readonly band: ConfidenceBand | undefined;
  /** One line, which stands beside the number in the policy. */
  readonly why: string;
}

/** What was added to the observed need. */
export interface Headroom {
  /** From 1. */
  readonly factor: number;
  readonly why: string;
}

/** What is refused of the requests of a rule, by a replay of the log or by an estimate. */
export interface Refusals {
  readonly requestRatio: number;
  /** Without the requests of outliers. */
  readonly ordinaryRequestRatio: number;
  /** Of pairs of a caller and a day on which it sent something. */
  readonly callerDayRatio: number;
  /** Most refused first, a bounded number. */
  readonly callers: readonly RefusedCaller[];
}

/** What was predicted from all days but the last one, and what the last one was like. */
export interface HeldOutCheck {
  /** Days since 1970. */
  readonly day: number;
  readonly fittedDayCount: number;
  /** Part of the callers that are refused on a day. */
  readonly predictedRatio: number;
  readonly actualRatio: number;
  /** What the last day needed, by what was predicted, less 1. */
  readonly needError: number;
}

/** A caller that a proposed limit refuses. */
export interface RefusedCaller {
  /** Hashed, or as it is if that was asked for. */
  readonly name: string;
  readonly refusedCount: number;
  /** Whether it needs so much more than others that the limit is meant for it. */
  readonly isOutlier: boolean;
}

/** A proposed limit: `hits` in each period, and at most `burst` at once. */
export interface Proposal {
  readonly domain: string;
  /** The label of the rule. */
  readonly rule: string;
  /** Whether all requests share one bucket. */
  readonly isShared: boolean;
  /** Where hits were counted by steps; then `refusals` are estimated, and no log was replayed. */
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
  /** Sentences: how the numbers were chosen. */
  readonly reasons: readonly string[];
}
