import { ceilMulDiv, floorMulDiv } from "../base/safe-integer-math.js";
import { hitsMax, type LimitKey, type Role } from "./limit.js";
import { type Windows, windowAt } from "./window.js";

/** Levels are in units of 2^-20 hit, so that a yearly limit drifts by less than 1 ppm. */
export const unitsPerHit = 1_048_576;

/** The largest cost of one charge, in hits: more than any bucket holds, including debt. */
export const costHitsMax = 8_589_934_592;

/** The largest level of a bucket: two bursts of maximum size, one of them debt. Below 2^53. */
export const levelUnitsMax = 2 * hitsMax * unitsPerHit;

/** The stored state of a bucket. Both values are integers, at least 0. */
export interface Bucket {
  /** The usage, in units of 2^-20 hit, at most `levelUnitsMax`. */
  readonly level: number;
  /** The store's time at which `level` applied, in microseconds. */
  readonly tUs: number;
}

/** One charge against one limit. Includes rate and burst, because the store keeps only buckets. */
export interface Charge {
  /**
   * All charges of a request on one key belong to one limit. If limits that requests carry differ
   * nevertheless, the first one defines how the bucket drains, and each one its own burst.
   */
  readonly key: LimitKey;
  /** Hits that drain in `periodUs`: 0 to 2^32 - 1. */
  readonly hits: number;
  /** 1 to ten years, in microseconds. */
  readonly periodUs: number;
  /** The capacity in hits: 0 to 2^32 - 1; `burst / (hits / periodUs)` is at most ten years. */
  readonly burst: number;
  /** Requested hits, 0 to `costHitsMax`. Zero peeks. */
  readonly cost: number;
  readonly role: Role;
  /** Refunds `cost` hits instead of charging them. The level never falls below 0. */
  readonly isRefund: boolean;
  /** Whether a peek is also over the limit if no whole hit is left, not only in debt. */
  readonly peekExhausted: boolean;
  /**
   * If present, the bucket does not drain continuously, but is emptied at the end of each window.
   * Everything else is the same.
   */
  readonly windows?: Windows | undefined;
  /**
   * Absent for limits of the policy. Each of the limits that requests carry for one descriptor and
   * period has its own bucket. This key stores the state of the bucket that was charged last: an
   * unused bucket starts with it, up to its burst. If several charges of a request name it, only
   * the first one reads and writes it. It is never a `key`.
   */
  readonly lastKey?: LimitKey;
  /**
   * How long its request may be held, 0 to `delayUsMax`. The charge then also fits if it fits by
   * draining alone within this time, unless its cost is 0 or above the burst. Absent: it is never
   * held. Present only if `mayDelay` returns true.
   */
  readonly delayUs?: number;
}

/** The longest time that a charge may be held, in microseconds. */
export const delayUsMax = 60_000_000;

/** The part of a charge that defines how its bucket drains. */
export type Drain = Pick<Charge, "hits" | "periodUs" | "windows">;

/**
 * A full debt of two bursts, each of ten years, is below this: 2^50 us are 35 years. A higher
 * level, left by an edit, is reported and kept no longer than this.
 */
const drainTimeCapUs = 2 ** 50;

/** Returns the units that drain in `elapsedUs`, rounded down, at most `level`. */
function drainedUnits(drain: Drain, elapsedUs: number, level: number): number {
  return floorMulDiv(elapsedUs, drain.hits * unitsPerHit, drain.periodUs, level);
}

/** Returns the microseconds in which at least `units` drain, rounded up. Undefined at rate 0. */
function drainTimeUs(drain: Drain, units: number): number | undefined {
  if (units <= 0) return 0;
  if (drain.hits === 0) return undefined;
  return ceilMulDiv(units, drain.periodUs, drain.hits * unitsPerHit, drainTimeCapUs);
}

/**
 * Whether a charge may hold its request: it is on a limit of the policy that drains, and a request
 * that is over is not charged.
 */
export function mayDelay({ role, isRefund, windows, lastKey }: Charge): boolean {
  const isPlain = !isRefund && windows === undefined && lastKey === undefined;
  return isPlain && (role === "enforce" || role === "shadow");
}

/**
 * Returns the level up to which a charge fits, in units: the burst, and what drains while its
 * request may be held, rounded down.
 *
 * Example: 10 hits per second, burst 5, held for at most 200 ms: 7 hits.
 */
export function capacityUnits({ burst, cost, delayUs, hits, periodUs }: Charge): number {
  const burstUnits = burst * unitsPerHit;
  if (delayUs === undefined || cost === 0 || cost > burst) return burstUnits;
  const roomUnits = levelUnitsMax - burstUnits;
  return burstUnits + floorMulDiv(delayUs, hits * unitsPerHit, periodUs, roomUnits);
}

/**
 * Returns the microseconds for which a granted charge holds its request: until the level has
 * drained to the burst, rounded up. At most `Charge.delayUs`.
 *
 * Requests that are held this long leave as if they had arrived at that time, one after the other,
 * and had all fitted. Proof: let V be the level due to all charges up to a request's own. The
 * request leaves when V has drained to the burst. Its cost is at most the burst, so until then V
 * without the cost is not empty. The bucket therefore drains at its full rate, as does one that is
 * charged when requests leave. Both levels are equal then, and the second is within the burst. So
 * in any interval of length t, a key lets at most burst + floor(t * rate) hits leave, except for
 * the microsecond by which a time is rounded up.
 */
export function delayOf(charge: Charge, { level, tUs }: Bucket, nowUs: number): number {
  if (charge.delayUs === undefined) return 0;
  const drainUs = drainTimeUs(charge, level - charge.burst * unitsPerHit) ?? 0;
  return Math.max(0, drainUs - (nowUs - tUs));
}

/**
 * Returns a stored bucket that is not in the future. If the clock was set back, its time becomes
 * now.
 */
export function pastBucket(bucket: Bucket | undefined, nowUs: number): Bucket {
  if (bucket === undefined) return { level: 0, tUs: nowUs };
  return bucket.tUs <= nowUs ? bucket : { level: bucket.level, tUs: nowUs };
}

/** Returns the level at `nowUs` of a bucket that is not in the future. */
export function levelAt(drain: Drain, bucket: Bucket, nowUs: number): number {
  if (bucket.level === 0) return 0;
  if (bucket.tUs === nowUs) return bucket.level;
  if (drain.windows !== undefined) {
    return bucket.tUs < windowAt(drain.windows, nowUs).startUs ? 0 : bucket.level;
  }
  return bucket.level - drainedUnits(drain, nowUs - bucket.tUs, bucket.level);
}

/**
 * Returns the whole hits that still fit, rounded down; 0 in debt. Example: with burst 10, 3.2 used
 * hits leave 6.
 */
export function remainingHits(charge: Charge, bucket: Bucket, nowUs: number): number {
  const free = charge.burst * unitsPerHit - levelAt(charge, bucket, nowUs);
  return free <= 0 ? 0 : Math.floor(free / unitsPerHit);
}

/**
 * Returns the microseconds until the charge fits if there are no other charges, rounded up; 0 if it
 * fits now. Undefined if it never fits, because it costs more than the burst or nothing drains.
 *
 * Example: with 10 hits per minute, burst 10, a full bucket and cost 1, one hit drains in
 * 6_000_000.
 */
export function retryAfterUs(charge: Charge, bucket: Bucket, nowUs: number): number | undefined {
  const peeked = charge.peekExhausted ? 1 : 0;
  const hits = charge.cost === 0 ? peeked : charge.cost;
  if (hits > charge.burst) return undefined;
  if (charge.windows !== undefined) {
    const isFitting = levelAt(charge, bucket, nowUs) <= (charge.burst - hits) * unitsPerHit;
    return isFitting ? 0 : windowAt(charge.windows, nowUs).endUs - nowUs;
  }
  const excess = bucket.level - (capacityUnits(charge) - hits * unitsPerHit);
  const waitUs = drainTimeUs(charge, excess);
  return waitUs === undefined ? undefined : Math.max(0, waitUs - (nowUs - bucket.tUs));
}

/**
 * Returns the microseconds until the bucket is empty if there are no other charges, rounded up.
 * Undefined at rate 0.
 */
export function bucketTimeToFullUs(
  drain: Drain,
  bucket: Bucket,
  nowUs: number,
): number | undefined {
  if (drain.windows !== undefined) {
    const isEmpty = levelAt(drain, bucket, nowUs) === 0;
    return isEmpty ? 0 : windowAt(drain.windows, nowUs).endUs - nowUs;
  }
  const waitUs = drainTimeUs(drain, bucket.level);
  return waitUs === undefined ? undefined : Math.max(0, waitUs - (nowUs - bucket.tUs));
}
