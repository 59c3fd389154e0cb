import { type Charge, levelAt, pastBucket, unitsPerHit } from "../../core/limits/bucket.js";
import { isSettled, type LimitKey } from "../../core/limits/limit.js";
import type { DecidedRequest } from "../rate-limit/decision-observer.js";
import type { LimitCheck } from "../rate-limit/prepared-query.js";

/** Maximum number of buckets per run with a known start. Further ones all start empty. */
export const shadowInitialBucketsMax = 100_000;

/** The start of a candidate's bucket. */
interface InitialBucket {
  readonly ask: LimitCheck;
  /**
   * `live`: with the usage of the bucket with the same key in the active policy. `empty`: that
   * policy has no such bucket.
   */
  readonly kind: "live" | "empty";
  /** The charge that brings an uncharged bucket to its start. Undefined: nothing to charge. */
  readonly charge: Charge | undefined;
}

/** An answered call, and the candidate's limits that it matches. */
interface InitialBucketCall {
  readonly asks: readonly LimitCheck[];
  /** The bucket's name in the store of the active policy. */
  readonly liveName: (key: LimitKey) => LimitKey | undefined;
  readonly request: DecidedRequest;
  readonly epochUs: number;
}

/**
 * Starts buckets of a candidate with the usage that live buckets had before the first call that
 * meets both. A key identifies the caller and the name or period of the limit: if the candidate has
 * the same key, the limit is the same. The answer of the live call contains the bucket, so nothing
 * is read for it.
 */
export class ShadowInitialBuckets {
  readonly #sinceUs: number;
  /** Hashes of keys. If two keys have the same hash, the second one loses its start. */
  readonly #known = new Set<number>();

  /** @param sinceUs when the run began on the first replica, in microseconds since 1970 */
  constructor(sinceUs: number) {
    this.#sinceUs = sinceUs;
  }

  /** Returns the buckets that this call is the first to meet on this replica. */
  of({ asks, liveName, request, epochUs }: InitialBucketCall): readonly InitialBucket[] {
    if (request.isFallback === true) return [];
    return asks.flatMap((ask): readonly InitialBucket[] => {
      const hash = hashOf(ask.charge.key);
      if (this.#known.has(hash) || this.#known.size >= shadowInitialBucketsMax) return [];
      const name = liveName(ask.charge.key);
      const index = request.charges.findIndex(({ key }) => key === name);
      const live = request.charges[index];
      if (live === undefined) {
        this.#known.add(hash);
        return [{ ask, kind: "empty", charge: undefined }];
      }
      const usedHits = usedBefore(request, index);
      if (usedHits === undefined) return [];
      this.#known.add(hash);
      // Usage from before the run has drained by now.
      if (!this.#reachesBack(live, epochUs)) return [];
      return [{ ask, kind: "live", charge: beginningCharge(ask.charge, usedHits) }];
    });
  }

  #reachesBack({ hits, burst, periodUs, windows }: Charge, epochUs: number): boolean {
    if (windows !== undefined) return windows.startUs <= this.#sinceUs;
    return hits > 0 && epochUs - this.#sinceUs <= (burst * periodUs) / hits;
  }
}

/** Whole hits in a bucket before a call, rounded up. Undefined: the answer does not say. */
function usedBefore(request: DecidedRequest, index: number): number | undefined {
  const { charges, results, nowUs, isDenied } = request;
  const charge = charges[index];
  const result = results[index];
  if (charge === undefined || result === undefined) return undefined;
  const isCharged = isSettled(charge.role) || (!isDenied && !result.isOver);
  const own = isCharged && !charge.isRefund ? charge.cost * unitsPerHit : 0;
  const level = levelAt(charge, pastBucket(result.bucket, nowUs), nowUs) - own;
  return Math.max(0, Math.ceil(level / unitsPerHit));
}

/** It fits only into an unused bucket: the first replica that charged it has brought it there. */
function beginningCharge(charge: Charge, usedHits: number): Charge | undefined {
  if (usedHits === 0 || charge.hits === 0) return undefined;
  const all = { cost: usedHits, burst: usedHits, isRefund: false };
  return { ...charge, ...all, role: "enforce" };
}

/** FNV-1a over UTF-16 units. */
function hashOf(key: LimitKey): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i += 1) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return hash;
}
