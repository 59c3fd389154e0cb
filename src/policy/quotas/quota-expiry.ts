import type { Limit, Rule } from "../../core/limits/limit.js";
import type { ReadExpiry } from "./quota-settings.js";

/** What Envoy does with a bucket after its assignment; `forSeconds` later as before the first. */
export interface ExpiredQuota {
  /** Whole seconds, 2 to 86,400. Default 3,600. */
  readonly forSeconds: number;
  readonly fallback:
    | { readonly kind: "blanket"; readonly rule: "allow" | "deny" }
    /** So much for each bucket of each Envoy: the limit's, divided by proxies and classes. */
    | { readonly kind: "tokens"; readonly rate: QuotaRate };
}

/** How fast, and how much at once. */
export interface QuotaRate {
  /** 1 to `hitsMax`. */
  readonly hits: number;
  /** Whole seconds from 1: Envoy drops what is beyond them, and 0 s let everything pass. */
  readonly periodSeconds: number;
  /** 1 to `hitsMax`. */
  readonly burst: number;
}

/** The longest period that a share is written in: an Envoy fills its bucket as it goes along. */
const sharePeriodSecondsMax = 86_400;

/**
 * What an Envoy does with a bucket when nobody told it anything new: `limit` is the smallest of the
 * limits that the bucket may meet, divided by all who may do the same. It needs nobody to be asked,
 * and all of them together admit no more than the limit while they are as many as expected.
 *
 * @param met the rules that a bucket of the quota may meet
 * @param sharers proxies, each as often as it has buckets of one limit
 */
export function expiredQuota(
  { fallback, forSeconds }: ReadExpiry,
  met: readonly Rule[],
  sharers: number,
): ExpiredQuota {
  if (fallback !== "limit") return { forSeconds, fallback: { kind: "blanket", rule: fallback } };
  const limits = met
    .flatMap(({ effect }) => (effect.kind === "limited" ? effect.limits : []))
    .filter(({ role }) => role !== "shadow");
  const [first, ...others] = limits;
  // What only counts, or has no limit, is let pass by an Envoy that is on its own, too.
  if (first === undefined) return { forSeconds, fallback: { kind: "blanket", rule: "allow" } };
  const least = others.reduce((slow, one) => (isSlower(one, slow) ? one : slow), first);
  if (least.hits === 0) return { forSeconds, fallback: { kind: "blanket", rule: "deny" } };
  const burst = Math.min(...limits.map((one) => one.burst));
  return { forSeconds, fallback: { kind: "tokens", rate: shareOf({ ...least, burst }, sharers) } };
}

function isSlower(one: Limit, other: Limit): boolean {
  return one.hits / one.periodUs < other.hits / other.periodUs;
}

/**
 * A limit divided by those who share it, never more than its part.
 *
 * Example: 1,000 a second among 3 are 1,000 in 3 s; 10 a day among 100 are 1 in 10 days.
 */
export function shareOf(
  { hits, periodUs, burst }: Pick<Limit, "hits" | "periodUs" | "burst">,
  sharers: number,
): QuotaRate {
  const burstShare = Math.max(1, Math.floor(burst / sharers));
  const periodSeconds = (periodUs / 1_000_000) * sharers;
  if (periodSeconds <= sharePeriodSecondsMax) return { hits, periodSeconds, burst: burstShare };
  const dayHits = Math.floor((hits * sharePeriodSecondsMax) / periodSeconds);
  return dayHits >= 1
    ? { hits: dayHits, periodSeconds: sharePeriodSecondsMax, burst: burstShare }
    : { hits: 1, periodSeconds: Math.ceil(periodSeconds / hits), burst: burstShare };
}
