import { type BudgetUnit, costOf, countsOf } from "./budget-cost.js";
import type { LearnedCalls, LearnedCount } from "./learned-usage.js";
import type { ModelPrice } from "./price.js";
import { type CallFacts, type Usage, usageCountMax } from "./usage.js";

/** The basis of an estimate of one count. */
export type EstimateSource =
  /** The maximum that the request declares. */
  | "declared"
  /** The size of the request, times the learned tokens per byte. */
  | "requestBytes"
  /** A quantile of earlier calls. */
  | "learned"
  /** Nothing is known yet. */
  | "initial";

/** `usage.estimate` of a service. */
export interface EstimateSettings {
  /** The quantile of earlier calls, above 0 and below 1. */
  readonly quantile: number;
  /** The estimate of each count about which nothing is known. */
  readonly initial: number;
}

/** The expected usage of a call. */
export interface UsageEstimate {
  /** All counts that units are based on. */
  readonly usage: Usage & Required<Pick<Usage, LearnedCount>>;
  readonly sources: Readonly<Record<LearnedCount, EstimateSource>>;
}

/**
 * Estimates what a call will use, before it runs: output tokens as declared by the request, input
 * tokens by the size of the request, and everything else by earlier calls.
 *
 * Example: 4,000 bytes, nothing declared, ten earlier calls with 180 to 200 output tokens: 1,000
 * input tokens and, because quantiles are rounded up, 216 output tokens.
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
  const how = { learned, settings, sources };
  const usage = {
    inputTokens:
      requestBytes === undefined
        ? learnedCount("inputTokens", how)
        : bounded(requestBytes * learned.inputPerByte),
    outputTokens:
      outputTokensMax === undefined ? learnedCount("outputTokens", how) : bounded(outputTokensMax),
    responseBytes: learnedCount("responseBytes", how),
    durationMs: learnedCount("durationMs", how),
    customUnits: learnedCount("customUnits", how),
  };
  return { usage, sources };
}

/** Estimates a count that the request does not determine. Records the basis. */
function learnedCount(
  name: LearnedCount,
  how: {
    readonly learned: Omit<LearnedCalls, "learn">;
    readonly settings: EstimateSettings;
    readonly sources: Record<LearnedCount, EstimateSource>;
  },
): number {
  const value = how.learned.quantile(name, how.settings.quantile);
  how.sources[name] = value === undefined ? "initial" : "learned";
  return bounded(value ?? how.settings.initial);
}

/** The estimate of a call, and the budget that it is applied to. */
export interface EntryQuestion {
  readonly unit: BudgetUnit;
  /** For money. */
  readonly price: ModelPrice | undefined;
  /** The capacity of the account. */
  readonly capacity: number;
  readonly estimate: UsageEstimate;
  /** Returns the same estimate without what the request declares. */
  readonly undeclared: () => UsageEstimate;
}

/** The amount to reserve at one account. */
export interface EntryEstimate {
  /** 1 to the capacity. 1 if the capacity is 0. */
  readonly amount: number;
  /** The basis of the least certain count. */
  readonly source: EstimateSource;
}

/**
 * Returns the amount to reserve at one account: the expected cost of the call. It is at least 1, so
 * that nothing passes an exhausted account, and at most the capacity, so that an estimate alone
 * never excludes a caller. If a request declares more than the capacity, it is estimated as if it
 * declared nothing: a maximum is not an intention.
 */
export function estimateEntry(question: EntryQuestion): EntryEstimate {
  const { unit, price, capacity, estimate, undeclared } = question;
  const cost = costOf(unit, estimate.usage, price);
  const isDeclared = estimate.sources.outputTokens === "declared";
  const used = cost > capacity && isDeclared ? undeclared() : estimate;
  const expected = used === estimate ? cost : costOf(unit, used.usage, price);
  return { amount: Math.max(1, Math.min(expected, capacity)), source: sourceOf(unit, used) };
}

/** Returns the counts that estimates in a unit are based on. */
export function learnedCountsOf(unit: BudgetUnit): readonly LearnedCount[] {
  // Estimated input tokens include those of caches.
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

/** The facts about a call at its end that determine its cost. */
export interface EndedCall {
  /** The reported usage. */
  readonly known: Usage;
  /** HTTP status of the response. Undefined if it was not seen. */
  readonly status: number | undefined;
  /** The usage that was expected. */
  readonly expected: Usage;
  /** See `LearnedCalls`. */
  readonly outputPerByte: number;
}

/**
 * Returns the usage of a call that the upstream answered: the reported counts, and for the others
 *
 * - nothing, if the status is 400 or above: providers do not charge for errors
 * - output tokens by the bytes of the response, if those were counted
 * - otherwise, what was expected
 */
export function usedBy({ known, status, expected, outputPerByte }: EndedCall): Usage {
  if (status !== undefined && status >= 400) return { ...nothing, ...known };
  const { responseBytes, cachedTokens, cacheWriteTokens } = known;
  const used: { -readonly [Count in keyof Usage]: Usage[Count] } = { ...expected };
  if (responseBytes !== undefined) used.outputTokens = bounded(responseBytes * outputPerByte);
  // Expected input tokens include cached ones, which would count twice if those were reported.
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
