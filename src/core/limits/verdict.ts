import { bucketTimeToFullUs, type Charge, remainingHits, retryAfterUs } from "./bucket.js";
import type { ChargeResult } from "./gcra.js";
import { denialOf, hitsMax, type Limit, type LimitUnit, unitSeconds } from "./limit.js";
import type { RequestMarks } from "./request-marks.js";

/**
 * The part of a limit that a status reports. A limit itself can be used, so that derived values can
 * be cached with it. Source: envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.
 */
export type CurrentLimit = Pick<
  Limit,
  "name" | "hits" | "unit" | "unitMultiplier" | "burst" | "algorithm" | "spread"
>;

/**
 * The status of one descriptor. Source:
 * envoy.service.ratelimit.v3.RateLimitResponse.DescriptorStatus.
 */
export interface DescriptorVerdict {
  /**
   * Undefined if it was not evaluated, because the request was denied from the cache for another
   * descriptor.
   */
  readonly isOver: boolean | undefined;
  /** Absent if no limit applies to the descriptor. */
  readonly currentLimit?: CurrentLimit;
  /** Whole hits left, 0 to 2^32 - 1. Absent if `currentLimit` is, unless the rule is unlimited. */
  readonly limitRemaining?: number;
  /**
   * If over: time until the same charge fits. Otherwise: time until the bucket is empty. In
   * microseconds, rounded up. If the charge can never fit: the time in which a full bucket drains.
   */
  readonly durationUntilResetUs?: number;
}

/** The response to a request. Source: envoy.service.ratelimit.v3.RateLimitResponse. */
export interface Verdict {
  readonly isDenied: boolean;
  /** How long the caller must hold the request, in microseconds. Absent: not at all. */
  readonly delayUs?: number;
  /** What changes about the request, which passes. Absent: nothing. */
  readonly marks?: RequestMarks;
  /** One per descriptor, in the request's order. */
  readonly statuses: readonly DescriptorVerdict[];
}

/** The status of a descriptor that no limit applies to, including a rule without limits. */
export const unmatchedVerdict: DescriptorVerdict = { isOver: false };

/** The status of a descriptor that was not evaluated. */
export const unknownVerdict: DescriptorVerdict = { isOver: undefined };

/** The status of a descriptor whose rule is unlimited. */
export const unlimitedVerdict: DescriptorVerdict = { isOver: false, limitRemaining: hitsMax };

/** A limit with the store's result. */
export interface DecidedLimit {
  readonly limit: Limit;
  readonly charge: Charge;
  readonly result: ChargeResult;
}

/**
 * Returns the most restrictive status among the limits of a descriptor's rule. An enforced limit
 * that is over comes first, the longest wait before others; then the fewest remaining hits.
 *
 * A shadow limit is reported as not over. Its counters have the real result.
 */
export function descriptorVerdict(
  decided: readonly DecidedLimit[],
  nowUs: number,
): DescriptorVerdict {
  const [first] = decided;
  if (first === undefined) return unmatchedVerdict;
  let tightest = limitVerdict(first, nowUs);
  for (let i = 1; i < decided.length; i += 1) {
    const one = decided[i];
    const status = one === undefined ? tightest : limitVerdict(one, nowUs);
    if (isTighter(status, tightest)) tightest = status;
  }
  return tightest;
}

/** Returns the status of one limit. */
export function limitVerdict(
  { limit, charge, result }: DecidedLimit,
  nowUs: number,
): Required<DescriptorVerdict> {
  const isOver = result.isOver && denialOf(limit.role) !== "shadow";
  const resetUs = isOver
    ? (retryAfterUs(charge, result.bucket, nowUs) ?? neverFitsWaitUs(limit))
    : (bucketTimeToFullUs(charge, result.bucket, nowUs) ?? limit.periodUs);
  return {
    isOver,
    currentLimit: limit,
    limitRemaining: result.isOver ? 0 : remainingHits(charge, result.bucket, nowUs),
    durationUntilResetUs: resetUs,
  };
}

/**
 * A cost above the burst never fits. The reported wait is the time in which a full bucket drains.
 */
function neverFitsWaitUs(limit: Limit): number {
  return limit.hits === 0 ? limit.periodUs : Math.ceil((limit.burst * limit.periodUs) / limit.hits);
}

/** Whether one status is more restrictive than the other. Both have a limit. */
export function isTighter(
  one: Required<DescriptorVerdict>,
  other: Required<DescriptorVerdict>,
): boolean {
  if (one.isOver !== other.isOver) return one.isOver === true;
  if (one.isOver) return one.durationUntilResetUs > other.durationUntilResetUs;
  if (one.limitRemaining !== other.limitRemaining) {
    return one.limitRemaining < other.limitRemaining;
  }
  return one.durationUntilResetUs > other.durationUntilResetUs;
}

/** Whole seconds for a header, rounded up, so that no caller returns too early. */
export function headerSeconds(durationUs: number): number {
  return Math.ceil(durationUs / 1_000_000);
}

/** The length of a limit's period in whole seconds. Example: minute, 5 gives 300. */
export function periodSeconds(unit: LimitUnit, unitMultiplier: number): number {
  return unitSeconds[unit] * unitMultiplier;
}
