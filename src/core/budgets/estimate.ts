import { type BudgetUnit, costOf, countsOf } from "./budget-cost.js";
import type { LearnedCalls, LearnedCount } from "./learned-usage.js";
import type { ModelPrice } from "./price.js";
import { type CallFacts, type Usage, usageCountMax } from "./usage.js";

/** What an estimate of one count goes by. */
export type EstimateSource =
  /** The request's own maximum. */
  | "declared"
  /** The size of the request, by the tokens that a byte has had. */
  | "requestBytes"
  /** A quantile of earlier calls. */
  | "learned"
  /** Nothing is known yet. */
  | "initial";

/** `usage.estimate` of a service. */
export interface EstimateSettings {
  /** The quantile of earlier calls, above 0 and below 1. */
  readonly quantile: number;
  /** Of each count that nothing is known of. */
  readonly initial: number;
}

/** What a call is expected to use. */
export interface UsageEstimate {
  /** All counts that units are made of. */
  readonly usage: Usage & Required<Pick<Usage, LearnedCount>>;
  readonly sources: Readonly<Record<LearnedCount, EstimateSource>>;
}

/**
 * What a call is expected to use, before it runs: output tokens as the request declares them, input
 * tokens by the size of the request, and all else by earlier calls.
 *
 * Example: 4,000 bytes, nothing declared, ten earlier calls that wrote 180 to 200 tokens: 1,000
 * input tokens and, as quantiles are rounded up, 216 output tokens.
 */
export function estimateUsage(
  facts: CallFacts,
  learned: Omit<LearnedCalls, "learn">,
  settings: EstimateSettings,
): UsageEstimate {
  const { outputTokensMax, requestBytes } = facts;
  const sources: Record<LearnedCount, EstimateSource> = {
    inputTokens: "requestBytes",
    outputTokens: "declared",
    responseBytes: "learned",
    durationMs: "learned",
    customUnits: "learned",
  };
  const count = (name: LearnedCount, hint?: number): number => {
    if (hint !== undefined) return bounded(hint);
    const value = learned.quantile(name, settings.quantile);
    sources[name] = value === undefined ? "initial" : "learned";
    return bounded(value ?? settings.initial);
  };
  const usage = {
    inputTokens: count("inputTokens", requestBytes && requestBytes * learned.inputPerByte),
    outputTokens: count("outputTokens", outputTokensMax),
    responseBytes: count("responseBytes"),
    durationMs: count("durationMs"),
    customUnits: count("customUnits"),
  };
  return { usage, sources };
}

/** What is estimated of a call, and how it is measured. */
export interface EntryQuestion {
  readonly unit: BudgetUnit;
  /** For money. */
  readonly price: ModelPrice | undefined;
  /** Of the account. */
  readonly capacity: number;
  readonly estimate: UsageEstimate;
  /** The same estimate without what the request declares. */
  readonly undeclared: () => UsageEstimate;
}

/** What is reserved at one account. */
export interface EntryEstimate {
  /** 1 to the capacity; 1 where that is 0. */
  readonly amount: number;
  /** Of the count that is least certain. */
  readonly source: EstimateSource;
}

/**
 * What is reserved at one account: what the call is expected to cost, but at least 1, so that
 * nothing passes an exhausted account, and at most the capacity, so that an estimate locks nobody
 * out. A request that declares more than there may ever be is estimated as if it declared nothing:
 * a maximum is no intention.
 */
export function estimateEntry(question: EntryQuestion): EntryEstimate {
  const { unit, price, capacity, estimate, undeclared } = question;
  const cost = costOf(unit, estimate.usage, price);
  const isDeclared = estimate.sources.outputTokens === "declared";
  const used = cost > capacity && isDeclared ? undeclared() : estimate;
  const expected = used === estimate ? cost : costOf(unit, used.usage, price);
  return { amount: Math.max(1, Math.min(expected, capacity)), source: sourceOf(unit, used) };
}

/** The counts that estimates in a unit are made of. */
export function learnedCountsOf(unit: BudgetUnit): readonly LearnedCount[] {
  // Tokens of caches are among the input tokens there.
  return countsOf(unit).filter((count): count is LearnedCount => count in learnable);
}

const learnable: Readonly<Record<LearnedCount, true>> = {
  inputTokens: true,
  outputTokens: true,
  responseBytes: true,
  durationMs: true,
  customUnits: true,
};

const byCertainty: readonly EstimateSource[] = ["initial", "learned", "requestBytes", "declared"];

function sourceOf(unit: BudgetUnit, { sources }: UsageEstimate): EstimateSource {
  const own = learnedCountsOf(unit).map((count) => sources[count]);
  return byCertainty.find((source) => own.includes(source)) ?? "declared";
}

/** What is known of a call at its end, as far as its costs go. */
export interface EndedCall {
  /** What is reported. */
  readonly known: Usage;
  /** HTTP status of the response; undefined where nobody saw it. */
  readonly status: number | undefined;
  /** What it was expected to use. */
  readonly expected: Usage;
  /** See `LearnedCalls`. */
  readonly outputPerByte: number;
}

/**
 * What a call that the upstream answered has used: what is reported, and where nothing is
 *
 * - nothing, if the status is 400 or above: providers do not charge errors;
 * - output tokens by the bytes of the response, where those were counted;
 * - else what was expected.
 */
export function usedBy({ known, status, expected, outputPerByte }: EndedCall): Usage {
  if (status !== undefined && status >= 400) return { ...nothing, ...known };
  const { responseBytes, cachedTokens, cacheWriteTokens } = known;
  const used: { -readonly [Count in keyof Usage]: Usage[Count] } = { ...expected };
  if (responseBytes !== undefined) used.outputTokens = bounded(responseBytes * outputPerByte);
  // Expected input tokens are all of them: beside reported ones they would count twice.
  if ((cachedTokens ?? cacheWriteTokens) !== undefined) used.inputTokens = 0;
  return Object.assign(used, known);
}

const nothing: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  responseBytes: 0,
  customUnits: 0,
};

function bounded(count: number): number {
  return Math.min(Math.ceil(count), usageCountMax);
}
