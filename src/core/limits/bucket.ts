import { ceilMulDiv, floorMulDiv } from "../base/safe-integer-math.js";
import { hitsMax, type LimitKey, type Role } from "./limit.js";
import { type Windows, windowAt } from "./window.js";

/** Levels count in 2^-20 of a hit: fine enough that a yearly limit drifts less than 1 ppm. */
export const unitsPerHit = 1_048_576;

/** The largest cost of one charge in hits; more than any bucket holds, also in debt. */
export const costHitsMax = 8_589_934_592;

/** What no bucket holds more than: two of the largest bursts, one of them debt. Below 2^53. */
export const levelUnitsMax = 2 * hitsMax * unitsPerHit;

/** A bucket's state as stored. Both are whole and not negative. */
export interface Bucket {
  /** What is used, in units of 2^-20 hit, up to `levelUnitsMax`. */
  readonly level: number;
  /** The store's time at which `level` was true, in microseconds. */
  readonly tUs: number;
}

/** One limit asked for one cost. Rate and burst come along: the store keeps only buckets. */
export interface Charge {
  /**
   * A request's charges on one key are of one limit. Where limits that requests carry differ all
   * the same, the first says how the bucket drains, and each its own burst.
   */
  readonly key: LimitKey;
  /** Hits that drain in `periodUs`: 0 to 2^32 - 1. */
  readonly hits: number;
  /** 1 to ten years, in microseconds. */
  readonly periodUs: number;
  /** Hits that fit: 0 to 2^32 - 1; `burst / (hits / periodUs)` is at most ten years. */
  readonly burst: number;
  /** Hits asked for, 0 to `costHitsMax`. Zero peeks. */
  readonly cost: number;
  readonly role: Role;
  /** Gives `cost` hits back instead of taking them; never below an empty bucket. */
  readonly isRefund: boolean;
  /** A peek is over also when no whole hit is left, not just in debt. */
  readonly peekExhausted: boolean;
  /**
   * Where present, the bucket does not drain at the rate: it is emptied where a window ends, and
   * everything else is the same.
   */
  readonly windows?: Windows | undefined;
  /**
   * Absent for limits of the policy. Of limits that requests carry for one descriptor and period,
   * each has a bucket of its own, and under this key lies what the bucket that was charged last was
   * left with: a bucket without use begins with that, at most its burst. Of several charges of a
   * request that name it the first alone reads and writes it. It is nobody's `key`.
   */
  readonly lastKey?: LimitKey;
}

/** The part of a charge that says how its bucket drains. */
export type Drain = Pick<Charge, "hits" | "periodUs" | "windows">;

/**
 * A full debt of two bursts, each of ten years, is below this: 2^50 us are 35 years. What an edit
 * left above that is told and kept for no longer.
 */
const drainTimeCapUs = 2 ** 50;

/** Units that drain in `elapsedUs`, rounded down, at most `level`. */
function drainedUnits(drain: Drain, elapsedUs: number, level: number): number {
  return floorMulDiv(elapsedUs, drain.hits * unitsPerHit, drain.periodUs, level);
}

/** Microseconds in which at least `units` drain, rounded up; undefined when the rate is 0. */
function drainTimeUs(drain: Drain, units: number): number | undefined {
  if (units <= 0) return 0;
  if (drain.hits === 0) return undefined;
  return ceilMulDiv(units, drain.periodUs, drain.hits * unitsPerHit, drainTimeCapUs);
}

/** A stored bucket, not in the future: where a clock stepped back its time becomes now. */
export function pastBucket(bucket: Bucket | undefined, nowUs: number): Bucket {
  if (bucket === undefined) return { level: 0, tUs: nowUs };
  return bucket.tUs <= nowUs ? bucket : { level: bucket.level, tUs: nowUs };
}

/** The level at `nowUs` of a bucket that is not in the future. */
export function levelAt(drain: Drain, bucket: Bucket, nowUs: number): number {
  if (bucket.level === 0) return 0;
  if (drain.windows !== undefined) {
    return bucket.tUs < windowAt(drain.windows, nowUs).startUs ? 0 : bucket.level;
  }
  return bucket.level - drainedUnits(drain, nowUs - bucket.tUs, bucket.level);
}

/** Whole hits that still fit, rounded down; 0 in debt. Example: burst 10, 3.2 hits used leave 6. */
export function remainingHits(charge: Charge, bucket: Bucket, nowUs: number): number {
  const free = charge.burst * unitsPerHit - levelAt(charge, bucket, nowUs);
  return free <= 0 ? 0 : Math.floor(free / unitsPerHit);
}

/**
 * Microseconds until the charge fits when nobody else asks, rounded up; 0 when it fits now,
 * undefined when it never will (it costs more than the burst, or nothing drains).
 *
 * Example: 10 hits a minute, burst 10, a full bucket, cost 1: one hit drains in 6_000_000.
 */
export function retryAfterUs(charge: Charge, bucket: Bucket, nowUs: number): number | undefined {
  const peeked = charge.peekExhausted ? 1 : 0;
  const hits = charge.cost === 0 ? peeked : charge.cost;
  if (hits > charge.burst) return undefined;
  if (charge.windows !== undefined) {
    const isFitting = levelAt(charge, bucket, nowUs) <= (charge.burst - hits) * unitsPerHit;
    return isFitting ? 0 : windowAt(charge.windows, nowUs).endUs - nowUs;
  }
  const excess = bucket.level - (charge.burst - hits) * unitsPerHit;
  const waitUs = drainTimeUs(charge, excess);
  return waitUs === undefined ? undefined : Math.max(0, waitUs - (nowUs - bucket.tUs));
}

/** Microseconds until the bucket is empty when nobody else asks, rounded up; none at rate 0. */
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
