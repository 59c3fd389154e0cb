import { bucketTimeToFullUs, type Charge, remainingHits, retryAfterUs } from "./bucket.js";
import type { ChargeResult } from "./gcra.js";
import { denialOf, hitsMax, type Limit, type LimitUnit, unitSeconds } from "./limit.js";

/**
 * The part of a limit that a status reports: a limit itself will do, so that what is made of it can
 * be kept with it. Source: envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.
 */
export type CurrentLimit = Pick<
  Limit,
  "name" | "hits" | "unit" | "unitMultiplier" | "burst" | "algorithm"
>;

/**
 * What one descriptor met. Source: envoy.service.ratelimit.v3.RateLimitResponse.DescriptorStatus.
 */
export interface DescriptorVerdict {
  /**
   * Undefined where nobody looked: the request was refused for another descriptor by what was
   * remembered of that one.
   */
  readonly isOver: boolean | undefined;
  /** Absent when no limit applies to the descriptor. */
  readonly currentLimit?: CurrentLimit;
  /** Whole hits left, 0 to 2^32 - 1; absent with `currentLimit` unless the rule is unlimited. */
  readonly limitRemaining?: number;
  /**
   * Over: time until the same ask fits. Not over: time until the bucket is empty. In microseconds,
   * rounded up. What can never fit is told the time in which a full bucket drains.
   */
  readonly durationUntilResetUs?: number;
}

/** What a request is told. Source: envoy.service.ratelimit.v3.RateLimitResponse. */
export interface Verdict {
  readonly isDenied: boolean;
  /** One a descriptor, in the request's order. */
  readonly statuses: readonly DescriptorVerdict[];
}

/** The status of a descriptor that no limit applies to (also whitelisted by a rule without one). */
export const unmatchedVerdict: DescriptorVerdict = { isOver: false };

/** The status of a descriptor that nobody looked at. */
export const unknownVerdict: DescriptorVerdict = { isOver: undefined };

/** The status of a descriptor whose rule is unlimited. */
export const unlimitedVerdict: DescriptorVerdict = { isOver: false, limitRemaining: hitsMax };

/** A limit with what the store found for it. */
export interface DecidedLimit {
  readonly limit: Limit;
  readonly charge: Charge;
  readonly result: ChargeResult;
}

/**
 * One status for a descriptor and all limits of its rule: the one that binds most. An over limit
 * that counts comes before any other and the longest wait first; then the fewest hits remaining.
 *
 * A shadow limit is reported as not over (that is what shadow means); its counter tells the truth.
 */
export function descriptorVerdict(
  decided: readonly DecidedLimit[],
  nowUs: number,
): DescriptorVerdict {
  let tightest: Required<DescriptorVerdict> | undefined;
  for (const one of decided) {
    const status = limitVerdict(one, nowUs);
    if (tightest === undefined || isTighter(status, tightest)) tightest = status;
  }
  return tightest ?? unmatchedVerdict;
}

function limitVerdict(
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

/** What costs more than the burst never fits: it is told the time in which a full bucket drains. */
function neverFitsWaitUs(limit: Limit): number {
  return limit.hits === 0 ? limit.periodUs : Math.ceil((limit.burst * limit.periodUs) / limit.hits);
}

/** Whether one status binds a caller more than the other; both have a limit. */
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

/** Whole seconds for a header, rounded up, so that nobody is told to come back too early. */
export function headerSeconds(durationUs: number): number {
  return Math.ceil(durationUs / 1_000_000);
}

/** The length of a limit's period in whole seconds. Example: minute, 5 gives 300. */
export function periodSeconds(unit: LimitUnit, unitMultiplier: number): number {
  return unitSeconds[unit] * unitMultiplier;
}
