import type { Bucket, Charge } from "../../core/limits/bucket.js";
import { type GlobalDemand, isBorrowing, type LenderBucket } from "../../core/limits/lending.js";
import type { Limit, LimitKey } from "../../core/limits/limit.js";

/** Maximum keys whose demand is kept between two rounds. That of further keys is dropped. */
export const demandKeysMax = 1_024;

/** Maximum keys that stay after a round, so that there is room for others. */
export const keptKeysMax = 768;

/** Maximum keys that a round borrows for: those with the most demand. */
export const borrowedKeysMax = 256;

/** How long a key without demand is kept, in milliseconds. */
const keptMs = 500;

/** The demand for a global limit's key, as this replica saw it. */
export interface DemandedKey {
  limit: Limit;
  charge: Charge;
  /** The bucket in this region, and the time of its store with it. */
  bucket: Bucket;
  nowUs: number;
  /** When the bucket was seen, monotonic. */
  seenMs: number;
  /** When demand was last noted, monotonic. */
  notedMs: number;
  /** Decided hits, halved in each round that borrows for the key, so that others get their turn. */
  heat: number;
  refusedHits: number;
  inTransitHits: number;
  /** Its bucket in each other region, by the region's position. */
  readonly lenders: (LenderBucket | undefined)[];
}

/** The keys that need more than their region has. Bounded; the hottest keys come first. */
export class DemandTable {
  readonly #keys = new Map<LimitKey, DemandedKey>();
  #droppedKeyCount = 0;

  /** Number of times that a key was not borrowed for because others had more demand. */
  get droppedKeyCount(): number {
    return this.#droppedKeyCount;
  }

  get keyCount(): number {
    return this.#keys.size;
  }

  /** Notes a decision. Takes nanoseconds, because it is called for each one of a global limit. */
  note(demand: GlobalDemand, nowMs: number): void {
    if (!isBorrowing(demand)) return;
    const { limit, charge, result, nowUs } = demand;
    // A peek that is over the limit counts as at least one hit.
    const hits = Math.max(1, charge.cost);
    const refusedHits = result.isOver ? hits : 0;
    const known = this.#keys.get(charge.key);
    if (known === undefined) {
      if (this.#keys.size >= demandKeysMax) {
        this.#droppedKeyCount += 1;
        return;
      }
      // Without spread syntax, which took a microsecond with 1,000 keys.
      this.#keys.set(charge.key, {
        limit,
        charge,
        bucket: result.bucket,
        nowUs,
        seenMs: nowMs,
        notedMs: nowMs,
        heat: hits,
        refusedHits,
        inTransitHits: 0,
        lenders: [],
      });
      return;
    }
    // The division depends on the limit, and so do the buckets that were found at others.
    if (known.limit !== limit) known.lenders.length = 0;
    known.limit = limit;
    known.charge = charge;
    known.notedMs = nowMs;
    known.heat += hits;
    known.refusedHits += refusedHits;
    if (nowUs < known.nowUs) return;
    known.bucket = result.bucket;
    known.nowUs = nowUs;
    known.seenMs = nowMs;
  }

  /**
   * Returns the keys to borrow for, the hottest first. Drops those without demand, and the coldest
   * if there are too many. The others wait for the next round and keep their heat.
   */
  hottest(nowMs: number): readonly DemandedKey[] {
    if (this.#keys.size === 0) return [];
    const live: DemandedKey[] = [];
    for (const one of this.#keys.values()) {
      if (nowMs - one.notedMs <= keptMs || one.inTransitHits > 0) live.push(one);
      else this.#keys.delete(one.charge.key);
    }
    live.sort((one, other) => other.heat - one.heat);
    this.#droppedKeyCount += Math.max(0, live.length - borrowedKeysMax);
    for (const { charge } of live.slice(keptKeysMax)) this.#keys.delete(charge.key);
    const hottest = live.slice(0, borrowedKeysMax);
    for (const one of hottest) one.heat /= 2;
    return hottest;
  }
}
