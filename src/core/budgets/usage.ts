/**
 * The usage of a call, as its provider reports it. Counts are integers, 0 to `usageCountMax`. An
 * absent count was not reported.
 */
export interface Usage {
  /** Input tokens that were neither read from a cache nor written to one. */
  readonly inputTokens?: number;
  /** Input tokens that were read from a cache. */
  readonly cachedTokens?: number;
  /** Input tokens that were written to a cache. */
  readonly cacheWriteTokens?: number;
  /** Output tokens, including reasoning. */
  readonly outputTokens?: number;
  /** The part of `outputTokens` that was reasoning. For reports only. */
  readonly reasoningTokens?: number;
  /** Bytes of the response's body. */
  readonly responseBytes?: number;
  /** From the decision to the end of the response, in milliseconds. */
  readonly durationMs?: number;
  /** A cost in the service's own unit, such as GPU seconds or rows. */
  readonly customUnits?: number;
}

/** The names of counts in `Usage`. */
export const usageCounts = [
  "inputTokens",
  "cachedTokens",
  "cacheWriteTokens",
  "outputTokens",
  "reasoningTokens",
  "responseBytes",
  "durationMs",
  "customUnits",
] as const;

/** One of `usageCounts`. */
export type UsageCount = (typeof usageCounts)[number];

/** Maximum count of one call: 2^40. A larger report counts as this. */
export const usageCountMax = 1_099_511_627_776;

/** The facts that are known about a call before it runs. */
export interface CallFacts {
  /** The model that the request names, bounded to 128 characters. Empty if it names none. */
  readonly model: string;
  /** The maximum number of output tokens that the request declares. */
  readonly outputTokensMax?: number;
  /** The size of the request's body in bytes, if known. */
  readonly requestBytes?: number;
}
