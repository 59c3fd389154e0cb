import type { Bucket, Charge } from "./bucket.js";
import { levelAt, remainingHits, unitsPerHit } from "./bucket.js";
import type { ChargeResult } from "./gcra.js";
import { drainTimeUsMax, type Limit } from "./limit.js";
import { type Window, type Windows, windowAt } from "./window.js";

/**
 * Global limits: one budget over several regions, without a coordinator.
 *
 * Each of n regions enforces its part in its own store: 1/n of the rate, and a part of the burst.
 * A region whose bucket is more than half full borrows from the others. It charges a bucket there,
 * which is granted only up to half of that region's burst, and then gives the same hits to its own
 * bucket as a refund. Nothing is sent twice.
 *
 * Guarantee: let b' be the sum of the regional bursts. In any interval of length t, all regions
 * together admit at most b' + floor(t * rate) hits, plus the hits that had been charged but not
 * yet credited when the interval began.
 *
 * Proof: a charge for another region is an admission in the bucket that it is made in. So region i
 * charges at most b_i + t * r_i hits net of refunds, its own and those for others. Summed up, each
 * credit in the interval cancels the charge that came before it, unless that charge is older than
 * the interval.
 *
 * What a region keeps: let its own demand fit its rate and half of its burst, rounded down, in
 * every interval. Then none of it is refused. Proof: after a charge for another region, the level
 * is at most that half. What is charged from then on is its own demand, which fits the other half.
 */

/** A region among all regions that share global limits, sorted by name. */
export interface RegionShare {
  /** 0 to `count` - 1. */
  readonly index: number;
  /** The number of regions, at least 1. */
  readonly count: number;
}

/** The maximum number of regions that share global limits. */
export const regionsMax = 16;

/** The result of a decision for one global limit of its request. */
export interface GlobalDemand {
  /** The whole limit, with the key's override applied, before it was divided. */
  readonly limit: Limit;
  /** The charge against this region's part. */
  readonly charge: Charge;
  readonly result: ChargeResult;
  /** The store's time of the decision. */
  readonly nowUs: number;
}

/** What the decision path needs to know about regions. */
export interface RegionalLimits {
  readonly share: RegionShare;
  /** The maximum age of a bucket's state that a global limit is denied from, in milliseconds. */
  readonly denialMsMax: number;
  /** Called for each decision of a global limit. Returns at once. */
  note(demand: GlobalDemand): void;
}

/**
 * A region's part of a burst: the quotient, and one hit of the remainder for the first regions; at
 * least 1, unless the burst is 0. Example: 11 in 3 regions are 4, 4 and 3.
 */
export function regionalBurst(burst: number, { index, count }: RegionShare): number {
  if (burst === 0) return 0;
  const rest = burst % count;
  return Math.max(1, (burst - rest) / count + (index < rest ? 1 : 0));
}

/**
 * A charge against a region's part of the limit. The rate is divided exactly, as a longer period;
 * a window keeps its length and allows the region's part of the hits. Example: 10 per minute, burst
 * 11, in the first of 3 regions is 10 per three minutes, burst 4.
 */
export function regionalCharge(charge: Charge, share: RegionShare): Charge {
  return divideCharge(charge, share.count, regionalBurst(charge.burst, share));
}

/**
 * A charge with its rate divided by `count`, and this burst. If the period would exceed ten years,
 * it stays at ten years with fewer hits, at least 1. Window limits keep their windows.
 */
export function divideCharge(charge: Charge, count: number, burst: number): Charge {
  if (charge.burst === 0) return charge;
  if (charge.windows !== undefined) return { ...charge, burst };
  const periodUs = charge.periodUs * count;
  if (periodUs <= drainTimeUsMax) return { ...charge, periodUs, burst };
  const hits = Math.max(1, Math.floor(charge.hits * (drainTimeUsMax / periodUs)));
  return { ...charge, hits, periodUs: drainTimeUsMax, burst };
}

/** The level above which a region borrows, and up to which it lends, in hits. */
function lendingLevel(regionBurst: number): number {
  return Math.floor(regionBurst / 2);
}

/** Whether a decision of a global limit is worth borrowing for: over, or more than half full. */
export function isBorrowing({ charge, result }: Pick<GlobalDemand, "charge" | "result">): boolean {
  if (charge.isRefund) return false;
  return result.isOver || result.bucket.level > lendingLevel(charge.burst) * unitsPerHit;
}

/** A key's demand in a replica, and its bucket in this region as last seen. */
export interface KeyDemand {
  /** The charge against this region's part. */
  readonly charge: Charge;
  readonly bucket: Bucket;
  /** Hits that this replica refused since it last asked for some. */
  readonly refusedHits: number;
  /** Hits that this replica asked for and that are neither credited nor lost yet. */
  readonly inTransitHits: number;
}

/**
 * Returns how many hits to ask all other regions for. If the bucket is more than half full, it is
 * this replica's part of what the bucket holds, and what this replica refused. So regions in demand
 * have room for a whole burst, and the buckets of the others stay in use. Never more than a credit
 * could take from the bucket, and never more than the region's burst.
 *
 * Example: burst 20, level 16, two replicas, 5 hits refused: 8 + 5.
 *
 * @param replicaCount replicas of this region, which all see the same bucket
 */
export function wantedHits(demand: KeyDemand, replicaCount: number, nowUs: number): number {
  const { charge, bucket, refusedHits, inTransitHits } = demand;
  const levelHits = Math.round(levelAt(charge, bucket, nowUs) / unitsPerHit);
  if (refusedHits === 0 && levelHits <= lendingLevel(charge.burst)) return 0;
  const wanted = Math.ceil(levelHits / replicaCount) + refusedHits;
  return Math.max(0, Math.min(wanted, levelHits, charge.burst) - inTransitHits);
}

/**
 * The charge that takes hits from another region's bucket: up to half of its burst, so that own
 * demand there keeps the other half.
 *
 * @param limit the whole limit of the key
 * @param share the other region
 */
export function lendingCharge(charge: Charge, limit: Limit, share: RegionShare): Charge {
  const { key, windows } = charge;
  const whole = { ...plainCharge, key, windows };
  const { hits, periodUs, burst } = limit;
  const regional = regionalCharge({ ...whole, hits, periodUs, burst }, share);
  return { ...regional, burst: lendingLevel(regional.burst) };
}

const plainCharge = {
  cost: 1,
  role: "enforce",
  isRefund: false,
  peekExhausted: false,
} as const;

/** A key's bucket in another region, as that region's store replied. */
export interface LenderBucket {
  readonly bucket: Bucket;
  /** The store's time of the reply. */
  readonly nowUs: number;
  /** When the reply was received, monotonic. */
  readonly receivedMs: number;
}

/**
 * Returns the hits that a region can be expected to lend now, if it has no demand of its own. None
 * in a window other than the borrower's: what is charged there could not be credited.
 *
 * @param lending from `lendingCharge`
 * @param window the borrower's. Undefined for a limit that drains
 */
export function lendableHits(
  lending: Charge,
  { bucket, nowUs, receivedMs }: LenderBucket,
  { nowMs, window }: { readonly nowMs: number; readonly window: Window | undefined },
): number {
  const lenderNowUs = nowUs + Math.max(0, Math.floor((nowMs - receivedMs) * 1_000));
  if (window !== undefined && !isWithin(window, lenderNowUs)) return 0;
  return remainingHits(lending, bucket, lenderNowUs);
}

/** Whether a window contains a point in time. */
export function isWithin({ startUs, endUs }: Window, timeUs: number): boolean {
  return timeUs >= startUs && timeUs < endUs;
}

/**
 * Divides hits among regions in proportion to what each can lend, and never asks one for more: what
 * is in transit from one region is not asked of another. Example: 2 over 3, 0 and 1: 1, 0 and 1.
 */
export function apportion(hits: number, lendable: readonly number[]): readonly number[] {
  const sum = lendable.reduce((total, one) => total + one, 0);
  const askedHits = Math.min(hits, sum);
  let before = 0;
  let given = 0;
  return lendable.map((one) => {
    before += one;
    const upTo = sum === 0 ? 0 : Math.floor((askedHits * before) / sum);
    const part = upTo - given;
    given = upTo;
    return part;
  });
}

/**
 * The window of this region in which hits may be borrowed. Undefined if the store's clock is not in
 * the window that the charge was made for.
 */
export function borrowingWindow(windows: Windows, nowUs: number): Window | undefined {
  const window = windowAt(windows, nowUs);
  return window.startUs === windows.startUs || window.startUs === windows.endUs
    ? window
    : undefined;
}

/**
 * The refund that gives borrowed hits to this region's bucket.
 *
 * In a window, it has an effect only until the window ends by the clock of the store that executes
 * it, however late that is. After the end, windows of 1 us follow, in which every bucket that was
 * charged before is empty: then there is nothing to refund, and nothing is stored.
 *
 * @param window where the hits were charged. Undefined for a limit that drains
 */
export function creditCharge(charge: Charge, hits: number, window: Window | undefined): Charge {
  const { key, hits: rate, periodUs, burst } = charge;
  const credit = { ...plainCharge, key, hits: rate, periodUs, burst, cost: hits, isRefund: true };
  if (window === undefined) return credit;
  return { ...credit, windows: { ...window, nextEndUs: window.endUs + 1 } };
}
