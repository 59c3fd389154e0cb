import type { CallerDays } from "./caller-days.js";
import { needOfStep, observedRates } from "./number-scales.js";
import type { Refusals } from "./proposal.js";
import { editLimits, type FittedRule, fitRules } from "./propose.js";
import { proposalOf, type RecommendedPolicy, type RecommendInput } from "./recommend.js";
import { noLimits } from "./recommendation.js";
import type { ObservedRule } from "./rule-observer.js";

/** Maximum number of refused callers that are named for each limit. */
const namedCallersMax = 10;

/**
 * Fits limits to rules of which only the hits in steps of time are known. There are no requests to
 * replay, so the refusals are estimated from the needs that the limit was fitted to.
 */
export function recommendFromSteps(
  rules: readonly ObservedRule[],
  input: Pick<RecommendInput, "sources" | "options" | "nameOf" | "random">,
): RecommendedPolicy {
  const { sources, options, nameOf, random } = input;
  const { refusedCallerRatioMax, refusedRequestRatioMax, headroom } = options;
  const { fitted, notEnough } = fitRules(rules, sources, {
    random,
    headroom,
    refusedRequestRatioMax,
    refusedRatioMax: () => refusedCallerRatioMax,
  });
  const edited = editLimits(sources, fitted);
  if (edited.kind === "problem") return edited;
  const recommendation = {
    ...noLimits,
    demands: rules.map(({ demand }) => demand),
    proposals: fitted.map((one) => proposalOf(one, estimateRefusals(one, nameOf))),
    notEnough,
  };
  return { kind: "recommended", recommendation, sources: edited.sources };
}

/** Estimates refusals: on a day, a caller's need beyond the burst is refused. */
function estimateRefusals(
  { callerDays, callerDayCount, fit, limit }: FittedRule,
  nameOf: (caller: string) => string,
): Refusals {
  const isWindowed = limit.algorithm?.kind === "fixed_window";
  const rate = isWindowed ? 0 : observedRates.indexOf(fit.hits);
  const { callers } = callerDays;
  const weights = callerDays.weights();
  const refused = new Float64Array(callers.length);
  let [hits, refusedHits, ordinaryRefused, refusedDays] = [0, 0, 0, 0];
  for (let row = 0; row < callerDays.rowCount; row += 1) {
    const caller = callerDays.callerAt(row);
    const weight = weights[caller] ?? 1;
    hits += weight * callerDays.hitsAt(row);
    const excess = excessOf(callerDays, { row, rate, burst: fit.burst });
    if (excess === 0) continue;
    refused[caller] = (refused[caller] ?? 0) + excess;
    refusedHits += weight * excess;
    refusedDays += weight;
    if (!fit.outliers.has(callers[caller] ?? "")) ordinaryRefused += weight * excess;
  }
  const most = callers
    .map((caller, i) => ({ caller, refusedCount: Math.round(refused[i] ?? 0) }))
    .filter(({ refusedCount }) => refusedCount > 0)
    .sort((a, b) => b.refusedCount - a.refusedCount);
  return {
    requestRatio: refusedHits / Math.max(1, hits),
    ordinaryRequestRatio: ordinaryRefused / Math.max(1, hits),
    callerDayRatio: refusedDays / Math.max(1, callerDayCount),
    callers: most.slice(0, namedCallersMax).map(({ caller, refusedCount }) => {
      return { name: nameOf(caller), refusedCount, isOutlier: fit.outliers.has(caller) };
    }),
  };
}

function excessOf(
  days: CallerDays,
  { row, rate, burst }: { readonly row: number; readonly rate: number; readonly burst: number },
): number {
  const excess = needOfStep(days.needStepAt(row, rate)) - burst;
  return Math.max(0, Math.min(days.hitsAt(row), excess));
}
