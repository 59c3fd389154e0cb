import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import type { Limit, PathStep } from "../../core/limits/limit.js";
import { whyNotText } from "../../core/limits/match-report.js";
import type { Override } from "../../core/limits/override.js";
import { joinMarks, type RequestMarks } from "../../core/limits/request-marks.js";
import { microHzPerHz } from "../../core/quota/quota.js";
import type { LeftOutDescriptor } from "../../decide/admission/service-query.js";
import type { ExplainedDescriptor, Explanation } from "../../decide/inspect/explain.js";
import type { ExplainedUsage } from "../../decide/inspect/explain-budgets.js";
import type { KeyState } from "../../decide/inspect/key-inspector.js";
import type { QuotaPoolView } from "../../decide/quota/quota-view.js";
import type {
  DescriptorExplanation,
  Entry,
  Explanation as ExplanationMessage,
  KeyState as KeyStateMessage,
  Limit as LimitMessage,
  Override as OverrideMessage,
  PolicyVersion as PolicyVersionMessage,
  QuotaExplanation,
  RequestMarks as RequestMarksMessage,
  UsageExplanation,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import type { Policy } from "../../policy/policy.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import type { Plain } from "../codec/plain-message.js";
import type { PolicyVersion } from "./admin-parts.js";

/** Returns a 64-bit integer. Truncates fractions. What is not finite, or below 0, becomes 0. */
export function wideOf(value: number): bigint {
  return Number.isFinite(value) && value > 0 ? BigInt(Math.floor(value)) : 0n;
}

/** Returns the same counts as 64-bit integers. */
export function widened<Name extends string>(
  counts: Readonly<Record<Name, number>>,
): Record<Name, bigint> {
  const wide = Object.entries<number>(counts).map(([name, count]) => [name, wideOf(count)]);
  return Object.fromEntries(wide);
}

/** Encodes a time, from milliseconds since 1970. */
export function timeOf(epochMs: number): Plain<Timestamp> {
  const whole = Math.floor(epochMs);
  const seconds = Math.floor(whole / 1_000);
  return { seconds: BigInt(seconds), nanos: (whole - seconds * 1_000) * 1_000_000 };
}

/** Encodes a duration, from microseconds. */
export function durationOf(us: number): Plain<Duration> {
  const whole = Math.floor(us);
  const seconds = Math.floor(whole / 1_000_000);
  const nanos = (whole - seconds * 1_000_000) * 1_000;
  return { seconds: BigInt(seconds), nanos };
}

/**
 * Encodes a limit.
 *
 * @param regionCount regions that share a global limit, at least 1
 */
export function encodeLimit(limit: Limit, regionCount: number): Plain<LimitMessage> {
  const { name = "", hits, periodUs, burst, algorithm, role, onStoreFailure, over } = limit;
  return {
    name,
    hits: wideOf(hits),
    period: durationOf(periodUs),
    burst: wideOf(burst),
    algorithm: algorithm?.kind ?? "gcra",
    role,
    onStoreFailure,
    ...(over?.kind !== "delay" ? {} : { delayMax: durationOf(over.maxMs * 1_000) }),
    regionCount: limit.spread === undefined ? 0 : regionCount,
  };
}

/** Encodes a rule's path. A step without a value matches any. */
export function encodePath(path: readonly PathStep[]): Plain<Entry>[] {
  return path.map(({ key, value = "" }) => ({ key, value }));
}

/** Encodes a descriptor's entries. */
export function encodeEntries(
  entries: readonly { readonly key: string; readonly value: string }[],
): Plain<Entry>[] {
  return entries.map(({ key, value }) => ({ key, value }));
}

/**
 * Encodes an override.
 *
 * @param version of its record; 0 if it is not known
 */
export function encodeOverride(override: Override, version: number): Plain<OverrideMessage> {
  const { id, domain, entries, isPrefix, limitName = "", effect, expiresEpochMs } = override;
  const { reason, author, createdEpochMs } = override;
  return {
    id,
    domain,
    entries: encodeEntries(entries),
    isPrefix,
    limitName,
    effect: encodeEffect(effect),
    ...(expiresEpochMs === undefined ? {} : { expiresAt: timeOf(expiresEpochMs) }),
    reason,
    author,
    createdAt: timeOf(createdEpochMs),
    version: wideOf(version),
  };
}

function encodeEffect(effect: Override["effect"]) {
  switch (effect.kind) {
    case "frozen":
      return { case: "isFrozen", value: true } as const;
    case "multiplier":
      return { case: "multiplier", value: effect.by } as const;
    case "amount": {
      const { hits, burst } = effect;
      return { case: "amount", value: { hits: wideOf(hits), burst: wideOf(burst) } } as const;
    }
  }
}

/** Encodes the state of a bucket. */
export function encodeKeyState(state: KeyState): Plain<KeyStateMessage> {
  const { ruleLabel, limit, override, key, usedHits, remainingHits } = state;
  return {
    ruleLabel,
    limit: { ...encodeLimit(limit, state.regionCount), burst: wideOf(state.burst) },
    ...(override === undefined ? {} : { override: encodeOverride(override, 0) }),
    usedHits,
    remainingHits: wideOf(remainingHits),
    ...(state.retryAfterUs === undefined ? {} : { retryAfter: durationOf(state.retryAfterUs) }),
    ...(state.fullAfterUs === undefined ? {} : { fullAfter: durationOf(state.fullAfterUs) }),
    key: String(key),
  };
}

/** The origin of an explanation's descriptors, and its other parts. */
interface ExplanationSource {
  readonly service: string;
  readonly leftOut: readonly LeftOutDescriptor[];
  /** The name that is nearest to an unknown domain. */
  readonly nearestDomain?: string | undefined;
  /** Absent: they were not looked up. */
  readonly quotas?: readonly ExplainedQuota[];
  /** Undefined: nothing is measured. */
  readonly usage?: ExplainedUsage | undefined;
  /** The policy's prices, for amounts of money. */
  readonly prices?: Policy["prices"];
}

/** A quota that applies to the explained request. */
export interface ExplainedQuota {
  readonly quota: QuotaPolicy;
  /** Its bucket, as an ordinary descriptor. */
  readonly descriptor: ExplainedDescriptor;
  readonly use: Pick<Plain<QuotaExplanation>, "demandRate" | "heldRate" | "bucketCount">;
}

/** Encodes why a call passes or is refused. */
export function encodeExplanation(
  explanation: Explanation,
  { service, leftOut, nearestDomain = "", quotas = [], usage, prices }: ExplanationSource,
): Plain<ExplanationMessage> {
  const { policyVersion, isDomainKnown, descriptors, delayUs } = explanation;
  const isDenied = explanation.isDenied || usage?.isDenied === true;
  const marks = isDenied ? undefined : joinMarks(explanation.marks, usage?.marks);
  return {
    isDenied,
    ...(marks === undefined ? {} : { marks: encodeMarks(marks) }),
    ...(usage === undefined ? {} : { usage: encodeUsage(usage, prices) }),
    policyVersion,
    service,
    isDomainKnown,
    ...(delayUs === undefined ? {} : { delay: durationOf(delayUs) }),
    nearestDomain,
    descriptors: descriptors.map(encodeDescriptor),
    leftOut: leftOut.map(({ index, key, why }) => ({ index, key, why: leftOutTexts[why] })),
    quotas: quotas.map(({ quota, descriptor, use }) => ({
      quota: quota.name,
      descriptor: encodeDescriptor(descriptor),
      condition: conditionOf(quota),
      ...use,
    })),
  };
}

function encodeMarks({ setHeaders, fallback }: RequestMarks): Plain<RequestMarksMessage> {
  const tier = fallback?.kind === "header" ? [fallback.header] : [];
  return {
    // If a name is repeated, the last header counts, as in Envoy.
    headers: Object.fromEntries([...setHeaders, ...tier].map(({ name, value }) => [name, value])),
    fallbackCluster: fallback?.kind === "cluster" ? fallback.cluster : "",
  };
}

function encodeUsage(
  { model, price, budgets, isDeniedByHidden }: ExplainedUsage,
  prices: Policy["prices"],
): Plain<UsageExplanation> {
  return {
    model,
    priceModel: price?.model ?? "",
    isPriceKnown: price?.isKnown ?? false,
    isDeniedByHidden,
    budgets: budgets.map((explained) => {
      const { budget, values, capacity, spent, reserved, estimate, retryUs } = explained;
      const { isCapped, isOver, effect, isWarned } = explained;
      return {
        account: { budget: budget.name, values: [...values] },
        ...encodeUnit(budget, prices),
        capacity: wideOf(capacity),
        spent: wideOf(spent),
        reserved: wideOf(reserved),
        estimate: wideOf(estimate.amount),
        estimateSource: estimate.source,
        isCapped,
        isOver,
        effect,
        isWarned,
        ...(retryUs === undefined ? {} : { retryAfter: durationOf(retryUs) }),
      };
    }),
  };
}

/** Encodes the unit of a budget's amounts. */
export function encodeUnit({ unit: { kind } }: BudgetPolicy, prices: Policy["prices"]) {
  if (kind !== "money") return { unit: kind, currency: "", decimals: 0 };
  return { unit: kind, currency: prices?.currency ?? "", decimals: prices?.decimals ?? 0 };
}

/** Describes the conditions that only Envoy evaluates. */
function conditionOf({ when, match }: QuotaPolicy): string {
  const patterns = match.filter(({ test }) => test === "regex");
  const texts = patterns.map(({ name, text }) => `${name} matches ${text}`);
  return [...(when === undefined ? [] : [when]), ...texts].join(", and ");
}

const leftOutTexts: Readonly<Record<LeftOutDescriptor["why"], string>> = {
  absent: "the request has no such part, so Envoy does not send the descriptor",
  unknown: "only Envoy knows this part",
  streamDone: "it is charged after the response, and decides nothing",
};

function encodeDescriptor(explained: ExplainedDescriptor): Plain<DescriptorExplanation> {
  const { entries, hits, tried, matched = "", effect, isOver, limits } = explained;
  return {
    entries: encodeEntries(entries),
    hits: wideOf(hits),
    tried: tried.map(({ rule, why }) => ({
      label: rule.label,
      isMatch: why === undefined,
      why: why === undefined ? "" : whyNotText(why),
    })),
    matchedLabel: matched,
    effect,
    isOver,
    states: limits.map((limit) => encodeKeyState({ ...limit, ruleLabel: matched })),
    ...(explained.changesAfterUs === undefined
      ? {}
      : { changesAfter: durationOf(explained.changesAfterUs) }),
  };
}

/** Encodes how much of a pool's limits Envoys request, and hold from this replica. */
export function encodeQuotaUse(pool: QuotaPoolView | undefined) {
  if (pool === undefined) return { demandRate: 0, heldRate: 0, bucketCount: 0n };
  return {
    demandRate: pool.demandMicroHz / microHzPerHz,
    ...heldRate(boundOf(pool)),
    bucketCount: wideOf(pool.holderCount),
  };
}

/** Returns the maximum rate of all buckets of a pool. Infinity if everything passes. */
export function boundOf({ mode, heldMicroHz }: QuotaPoolView): number {
  if (mode === "denied") return 0;
  return mode === "limited" ? heldMicroHz : Number.POSITIVE_INFINITY;
}

/** Encodes a rate, from micro-hertz, as a field. Absent if nothing bounds it. */
export function heldRate(microHz: number): { readonly heldRate?: number } {
  return Number.isFinite(microHz) ? { heldRate: microHz / microHzPerHz } : {};
}

/** Encodes a policy that is, or was, active. */
export function encodePolicyVersion(policy: PolicyVersion): Plain<PolicyVersionMessage> {
  const { version, appliedEpochMs, author, reason, files, source } = policy;
  return {
    version,
    ...(appliedEpochMs === undefined ? {} : { appliedAt: timeOf(appliedEpochMs) }),
    author,
    reason,
    files: files.map(({ file, text }) => ({ file, text })),
    source,
  };
}
