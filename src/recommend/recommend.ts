import type { Random } from "../core/base/clock.js";
import { assert } from "../core/base/errors.js";
import { many } from "../core/base/many.js";
import { defaultSwitches } from "../decide/rate-limit/switches.js";
import { type PolicyText, parsePolicy } from "../policy/parse.js";
import { buildPolicy, type Policy } from "../policy/policy.js";
import type { ServicePolicy } from "../policy/services/service-policy.js";
import type { LoggedRequest } from "../simulate/logged-request.js";
import { Replay } from "../simulate/replay.js";
import { DemandReader, type ObservedDemand } from "./demand-reader.js";
import { unlimitedHits } from "./new-rule.js";
import type { Proposal, Refusals } from "./proposal.js";
import { percent, stepText } from "./proposal-words.js";
import { editLimits, type FittedRule, fitRules, numberReasons } from "./propose.js";
import type { Recommendation } from "./recommendation.js";
import { RefusalCounter } from "./refusal-counter.js";
import { type DemandBounds, daysMax, defaultDemandBounds } from "./rule-observer.js";

/** How much may be refused, and how limits are fitted. */
export interface RecommendOptions {
  /** Part of the callers that may have a request refused on a day, 0 to 1. */
  readonly refusedCallerRatioMax: number;
  /** Part of the requests of callers other than outliers that may be refused, 0 to 1. */
  readonly refusedRequestRatioMax: number;
  /** From 1; undefined: chosen from the differences between days. */
  readonly headroom: number | undefined;
  readonly bounds?: DemandBounds;
}

/** Input for a recommendation. */
export interface RecommendInput {
  readonly sources: readonly PolicyText[];
  /** The same texts, parsed. */
  readonly policy: Policy;
  /** Service whose limits apply to every request; undefined: as the policy's services say. */
  readonly forAll: Pick<ServicePolicy, "name" | "rateLimit"> | undefined;
  readonly options: RecommendOptions;
  /** Reads all logs again from the beginning. Throws the errors of reading. */
  readonly readLogs: (take: (request: LoggedRequest) => void) => Promise<void>;
  /** Returns a strong hash of a text, in hexadecimal. */
  readonly digest: (text: string) => string;
  /** Returns the name of a caller in reports, from its descriptor. */
  readonly nameOf: (descriptor: string) => string;
  readonly random: Random;
}

/** A recommendation, and the texts of the policy with its proposals. */
export type RecommendedPolicy =
  | {
      readonly kind: "recommended";
      readonly recommendation: Recommendation;
      readonly sources: readonly PolicyText[];
    }
  | RecommendProblem;

/** A sentence: requests are out of order, or the policy's text cannot be edited. */
interface RecommendProblem {
  readonly kind: "problem";
  readonly message: string;
}

/** Maximum number of rounds that raise limits which refuse too many requests. */
const roundsMax = 3;

/**
 * Observes callers in logs, fits limits, and replays the logs through the policy with these limits.
 * If a limit refuses more requests than allowed, it is fitted to more callers, and in the last
 * round to all of them.
 */
export async function recommendLimits(input: RecommendInput): Promise<RecommendedPolicy> {
  const { policy, options, sources } = input;
  const observed = await observeDemand(input);
  if ("kind" in observed) return observed;
  const allowed = new Map<number, number>();
  for (let round = 1; ; round += 1) {
    const { fitted, notEnough } = fitRules(observed.rules, sources, {
      random: input.random,
      headroom: options.headroom,
      refusedRequestRatioMax: options.refusedRequestRatioMax,
      refusedRatioMax: (rule) => allowed.get(rule.index) ?? options.refusedCallerRatioMax,
    });
    const edited = editLimits(sources, fitted);
    if (edited.kind === "problem") return edited;
    const counter = new RefusalCounter(fitted);
    if (fitted.length > 0) await replay(input, edited.sources, counter);
    const refusalsOf = ({ rule }: FittedRule) => counter.of(rule.index, input.nameOf);
    const tooMany = fitted.filter((one) => {
      return refusalsOf(one).ordinaryRequestRatio > options.refusedRequestRatioMax;
    });
    if (tooMany.length > 0 && round < roundsMax) {
      for (const { rule } of tooMany) {
        const before = allowed.get(rule.index) ?? options.refusedCallerRatioMax;
        allowed.set(rule.index, round === roundsMax - 1 ? 0 : before / 10);
      }
      continue;
    }
    const recommendation: Recommendation = {
      demands: observed.rules.map(({ demand }) => demand),
      proposals: fitted.map((one) => proposalOf(one, refusalsOf(one))),
      notEnough,
      services: [],
      overload: [],
      budgets: [],
      warnings: [...warningsOf(observed), ...unmetRules(policy, observed)],
    };
    return { kind: "recommended", recommendation, sources: edited.sources };
  }
}

/** Maximum part of requests out of order. More would make the needs too high. */
const lateRatioMax = 0.01;

/** Reads the logs once. Returns a problem if their order cannot be trusted. */
export async function observeDemand({
  policy,
  forAll,
  options,
  digest,
  readLogs,
}: RecommendInput): Promise<ObservedDemand | RecommendProblem> {
  const { bounds = defaultDemandBounds } = options;
  const reader = new DemandReader({ policy, forAll, digest, switches: defaultSwitches, bounds });
  await readLogs((request) => reader.take(request));
  const observed = reader.finish();
  const { lateCount, requestCount } = observed;
  if (lateCount <= lateRatioMax * requestCount) return observed;
  const late = `${lateCount.toLocaleString("en")} of ${requestCount.toLocaleString("en")} requests`;
  return { kind: "problem", message: `${late} are out of order; sort the log by time first` };
}

async function replay(
  { readLogs, digest, forAll }: RecommendInput,
  sources: readonly PolicyText[],
  counter: RefusalCounter,
): Promise<void> {
  const parsed = parsePolicy(sources);
  assert(parsed.kind === "policy", "a policy stays right if its numbers change");
  const candidate = new Replay({
    policy: buildPolicy("proposed", parsed),
    forAll,
    switches: defaultSwitches,
    digest,
    onPart: (part, isOver, timeUs) => counter.take(part, isOver, timeUs),
  });
  await readLogs((request) => candidate.take(request));
  candidate.finish();
}

/** Returns the reported proposal of a fitted limit, with its refusals. */
export function proposalOf(fitted: FittedRule, refusals: Refusals): Proposal {
  const { demand, limit, fit } = fitted;
  const whys = numberReasons(demand, fit);
  const isNew = limit.hits === unlimitedHits;
  return {
    domain: demand.domain,
    rule: demand.rule,
    isShared: demand.isShared,
    ...(demand.steps && { stepSeconds: demand.steps.seconds }),
    limit: limit.name,
    hits: {
      value: fit.hits,
      was: isNew ? undefined : limit.hits,
      band: fit.bands?.hits,
      why: whys.hits,
    },
    burst: {
      value: fit.burst,
      was: isNew ? undefined : limit.burst,
      band: fit.bands?.burst,
      why: whys.burst,
    },
    periodSeconds: limit.periodUs / 1_000_000,
    headroom: fit.headroom,
    refusals,
    curve: fit.curve,
    heldOut: fit.heldOut,
    reasons: reasonsOf(fitted),
  };
}

/** Returns sentences about how the numbers were chosen. */
function reasonsOf({ demand, fit, limit, callerDayCount }: FittedRule): readonly string[] {
  const { headroom, outliers, refusedRatio } = fit;
  const reasons = [
    limit.algorithm?.kind === "fixed_window"
      ? "The limit is what a window has to hold."
      : "Of all limits that fit, this one allows a caller the fewest requests in one period.",
    `Headroom: ${headroom.factor} times what callers sent: ${headroom.why}.`,
  ];
  if (outliers.size > 0) {
    const who = outliers.size === 1 ? "1 caller needs" : `${outliers.size} callers need`;
    reasons.push(
      `${who} more than 10 times what nine in ten callers need. The limit is not fitted to ` +
        "them: give them a rule of their own if they are welcome.",
    );
  }
  if (demand.sampledRatio < 1) {
    const sampled = callerDayCount * demand.sampledRatio;
    // If none is refused, the error is computed as if one were.
    const error = 2 * Math.sqrt(Math.max(refusedRatio, 1 / sampled) / sampled);
    reasons.push(
      "Callers with many requests were all followed, and of the others 1 in " +
        `${Math.round(1 / demand.sampledRatio)}, chosen by a hash. The part of refused callers ` +
        `is off by up to ${percent(error)} (two standard errors).`,
    );
  }
  if (demand.steps !== undefined) {
    reasons.push(
      `How requests lie within ${stepText(demand.steps.seconds)} is unknown. The burst lets all ` +
        "hits of two steps come at once, an upper bound.",
      ...demand.steps.notes,
    );
  }
  return reasons;
}

function warningsOf({ lateCount, leftOutCount }: ObservedDemand): readonly string[] {
  const warnings: string[] = [];
  if (lateCount > 0) {
    const late = `${many(lateCount, "request")} arrived too late to be sorted`;
    warnings.push(`${late}: sort the log by time first.`);
  }
  if (leftOutCount > 0) {
    const times = `${many(leftOutCount, "request")} are on further days`;
    warnings.push(`${times} than the first ${daysMax} that the log has, and were left out.`);
  }
  return warnings;
}

/** Returns a warning about rules with limits that no request has met. */
function unmetRules({ rules }: Policy, observed: ObservedDemand): readonly string[] {
  const met = new Set(observed.rules.map(({ rule }) => rule));
  const unmet = rules.filter((rule) => rule.effect.kind === "limited" && !met.has(rule));
  if (unmet.length === 0) return [];
  const names = unmet.slice(0, 5).map(({ domain, label }) => `${domain}/${label}`);
  const more = unmet.length > names.length ? ", ..." : "";
  return [`No request met ${many(unmet.length, "rule")}: ${names.join(", ")}${more}.`];
}
