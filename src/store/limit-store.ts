import type { ErrorCode } from "../core/base/errors.js";
import type { Bucket } from "../core/limits/bucket.js";
import type { RepeatedRequest, RepeatedResult } from "../core/limits/gcra.js";
import type { LimitKey } from "../core/limits/limit.js";

/**
 * One request of a batch, repeated `multiplicity` times in a row. More than once only if all of its
 * charges enforce, have a cost, are no refunds, and have different keys.
 */
export type StoreRequest = RepeatedRequest;

/** The store's decision for one request, and its time. */
export interface StoreResult extends RepeatedResult {
  /** Time of the decision on the store's clock, which `bucket.tUs` also uses, in microseconds. */
  readonly nowUs: number;
}

/**
 * The store's answer to one request of a batch. A failed request never fails its neighbours.
 */
export type StoreOutcome =
  | { readonly kind: "decided"; readonly result: StoreResult }
  /** Nothing of this request was charged. `STORE_FULL`: there is no room for a new key. */
  | { readonly kind: "failed"; readonly code: ErrorCode };

/** A stored bucket, read without changing it. */
export interface StoredBucket {
  readonly bucket: Bucket;
  readonly nowUs: number;
}

/**
 * Keeps buckets and decides charges, atomically and on the store's own clock.
 *
 * Every method rejects only with a `ServiceError` with a STORE_ code. A store never retries a call
 * that may have charged: a time-out or a lost connection is an error at once.
 */
export interface LimitStore {
  /**
   * Returns a short name for the key's bucket. Present if this store keeps no more of keys. Every
   * method accepts it in place of the key.
   */
  shorten?(key: LimitKey): LimitKey;
  /**
   * Decides each request of the batch in turn, by the algorithm of `decideRepeated` in
   * `core/limits/gcra`. Returns one outcome per request, in order.
   *
   * @param batch requests with at least one charge each; at most `batchChargesMax` charges in all,
   * whatever their multiplicity
   * @param deadlineMs monotonic time after which the caller no longer waits for the answer
   */
  take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]>;
  /** Reads a bucket without changing it; undefined if there is none (it is empty). */
  peek(key: LimitKey, deadlineMs: number): Promise<StoredBucket | undefined>;
  /** Empties the buckets of these keys. Returns how many there were. */
  forget(keys: readonly LimitKey[], deadlineMs: number): Promise<number>;
  /** Resolves if the store can decide charges now: it decides, and stores, one of its own. */
  ping(deadlineMs: number): Promise<void>;
  /** Closes connections. Calls in flight reject with STORE_CLOSED. */
  close(): Promise<void>;
}

/** Maximum number of charges in one batch. A larger turn is sent as several batches. */
export const batchChargesMax = 512;

/**
 * Maximum number of charges of one request. A request with more is refused with REQUEST_INVALID
 * before any store is called.
 */
export const requestChargesMax = 256;
