import type { Random } from "../core/base/clock.js";
import { many } from "../core/base/many.js";
import type { Limit, Rule } from "../core/limits/limit.js";
import { findLimit } from "../policy/edit/limit-places.js";
import type { PolicyText } from "../policy/parse.js";
import { formatDuration } from "../policy/text/duration.js";
import type { CallerDays } from "./caller-days.js";
import type { CallerDemand } from "./demand.js";
import { bandDaysMin, type Fit, fitLimit } from "./fit.js";
import { type EditedPolicy, editAll, type FileEdit } from "./new-rule.js";
import type { ConfidenceBand } from "./proposal.js";
import { percent, subjectOf } from "./proposal-words.js";
import type { NotEnoughData } from "./recommendation.js";
import type { ObservedLimit, ObservedRule } from "./rule-observer.js";

/** Minimum observations for a proposal. */
const demandMin = { requests: 1_000, callers: 20, hours: 1 } as const;

/** A limit of the policy, and its new fit. */
export interface FittedRule {
  readonly rule: Rule;
  readonly limit: Limit;
  readonly limitIndex: number;
  readonly demand: CallerDemand;
  readonly callerDays: CallerDays;
  /** Number of caller-day pairs. An estimate if callers were sampled. */
  readonly callerDayCount: number;
  readonly fit: Fit;
}

/** How much may be refused, and how the limits are fitted. */
export interface ProposeOptions {
  /** Part of the callers of a rule that may have a request refused on a day. */
  readonly refusedRatioMax: (rule: Rule) => number;
  readonly refusedRequestRatioMax: number;
  readonly headroom: number | undefined;
  readonly random: Random;
}

/** Fits all limits with enough observations, and reports what is missing for the others. */
export function fitRules(
  rules: readonly ObservedRule[],
  sources: readonly PolicyText[],
  options: ProposeOptions,
): { readonly fitted: readonly FittedRule[]; readonly notEnough: readonly NotEnoughData[] } {
  const fitted: FittedRule[] = [];
  const notEnough: NotEnoughData[] = [];
  for (const observed of rules) {
    const missing = missingOf(observed);
    if (missing.length > 0) notEnough.push({ subject: subjectOf(observed.demand), missing });
    else fitted.push(...observed.limits.map((one) => fitOne(observed, one, { sources, options })));
  }
  return { fitted, notEnough };
}

function fitOne(
  { rule, demand }: ObservedRule,
  { limit, callerDays }: ObservedLimit,
  { sources, options }: { sources: readonly PolicyText[]; options: ProposeOptions },
): FittedRule {
  const limits = rule.effect.kind === "limited" ? rule.effect.limits : [];
  const limitIndex = limits.indexOf(limit);
  const fit = fitLimit(callerDays, {
    random: options.random,
    headroom: options.headroom,
    refusedRequestRatioMax: options.refusedRequestRatioMax,
    refusedRatioMax: options.refusedRatioMax(rule),
    isShared: demand.isShared,
    isWindowed: limit.algorithm?.kind === "fixed_window",
    // Files of envoyproxy/ratelimit have no field for a burst.
    hasBurst: findLimit(sources, rule, limitIndex)?.isPolicy !== false,
  });
  const weights = callerDays.weights();
  let callerDayCount = 0;
  for (let row = 0; row < callerDays.rowCount; row += 1) {
    callerDayCount += weights[callerDays.callerAt(row)] ?? 1;
  }
  return { rule, limit, limitIndex, demand, callerDays, callerDayCount, fit };
}

function missingOf({ demand, limits }: ObservedRule): readonly string[] {
  const { requestCount, callerCount, startUs, endUs, isShared, steps } = demand;
  const missing: string[] = [];
  if (limits.length === 0) {
    const orSteps = steps === undefined ? "" : ", or in windows that are no whole steps";
    return [`its limits count in windows of a calendar${orSteps}, which are not fitted`];
  }
  if (requestCount < demandMin.requests) {
    const times = Math.ceil(demandMin.requests / Math.max(1, requestCount));
    const needed = `${demandMin.requests.toLocaleString("en")} are needed`;
    const count = many(requestCount, steps === undefined ? "request" : "hit");
    missing.push(`${count}; ${needed}, about ${times} times as many`);
  }
  if (!isShared && callerCount < demandMin.callers) {
    missing.push(`${many(callerCount, "caller")}; ${demandMin.callers} are needed`);
  }
  const spanMs = (endUs - startUs) / 1_000;
  if (spanMs < 3_600_000 * demandMin.hours) {
    const span = formatDuration(Math.floor(spanMs / 1_000) * 1_000);
    missing.push(
      `the ${steps === undefined ? "log" : "data"} covers ${span}; ${demandMin.hours} h is needed`,
    );
  }
  return missing;
}

/** Returns the policy with all fitted limits, and a comment next to each number. */
export function editLimits(
  sources: readonly PolicyText[],
  fitted: readonly FittedRule[],
): EditedPolicy {
  const edits: FileEdit[] = [];
  for (const { rule, limit, limitIndex, fit, demand } of fitted) {
    const place = findLimit(sources, rule, limitIndex);
    if (place === undefined) {
      const message = `the limits of ${subjectOf(demand)} are not written in one place`;
      return { kind: "problem", message };
    }
    const whys = numberReasons(demand, fit);
    const hits = { name: "requests_per_unit", value: String(fit.hits), comment: whys.hits };
    const burst = { name: "burst", value: String(fit.burst), comment: whys.burst };
    const hasBurst = place.isPolicy && limit.algorithm?.kind !== "fixed_window";
    const entries = hasBurst ? [hits, burst] : [hits];
    edits.push({ file: place.source.file, edit: { kind: "set", path: place.path, entries } });
  }
  return editAll(sources, edits);
}

/** Returns one line about the origin of each number. */
export function numberReasons(
  { isShared, callerCount, dayCount }: CallerDemand,
  { headroom, bands, refusedRatio }: Fit,
): { readonly hits: string; readonly burst: string } {
  const whose = isShared ? "all requests" : `what ${callerCount.toLocaleString("en")} callers sent`;
  const refused = isShared ? "" : `; refuses ${percent(refusedRatio)} of them on a day`;
  const data = `${headroom.factor} times ${whose} in ${many(dayCount, "day")}`;
  return {
    hits: `for ${data}${refused}${bandWords(bands?.hits)}`,
    burst: `what that needs at once at this rate${bandWords(bands?.burst)}`,
  };
}

function bandWords(band: ConfidenceBand | undefined): string {
  if (band === undefined) return `; no band: fewer than ${bandDaysMin} days`;
  return `; ${Math.round(100 * band.level)} % band ${band.low} to ${band.high}`;
}
