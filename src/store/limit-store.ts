import type { ErrorCode } from "../core/base/errors.js";
import type { Bucket } from "../core/limits/bucket.js";
import type { RepeatedRequest, RepeatedResult } from "../core/limits/gcra.js";
import type { LimitKey } from "../core/limits/limit.js";

/**
 * One request of a batch, asked `multiplicity` times in a row. More than once only where all of its
 * charges enforce, cost something, give nothing back, and are on keys of their own.
 */
export type StoreRequest = RepeatedRequest;

/** What the store decided for one request, and its own time then. */
export interface StoreResult extends RepeatedResult {
  /** The store's time of the decision, in microseconds; what `bucket.tUs` is measured on. */
  readonly nowUs: number;
}

/**
 * How the store answered for one request of a batch: one bad request never fails its neighbours.
 */
export type StoreOutcome =
  | { readonly kind: "decided"; readonly result: StoreResult }
  /** Nothing of this request was charged. `STORE_FULL`: a new key, and no room for it. */
  | { readonly kind: "failed"; readonly code: ErrorCode };

/** A bucket as stored, read without changing it. */
export interface StoredBucket {
  readonly bucket: Bucket;
  readonly nowUs: number;
}

/**
 * Where buckets live and charges are decided, atomically and by the store's own clock.
 *
 * Every method rejects with a `ServiceError` of a STORE_ code and with nothing else. A store never
 * retries a call that may have charged: a time-out or a lost connection is an error at once.
 */
export interface LimitStore {
  readonly kind: "memory" | "redis";
  /**
   * A short name for the key's bucket, where this store keeps no more of keys: every method takes
   * it in place of the key.
   */
  shorten?(key: LimitKey): LimitKey;
  /**
   * Decides each request of the batch in turn, as `decideRepeated` in `core/limits/gcra` says; one
   * outcome a request, in order.
   *
   * @param batch requests, none without a charge; at most `batchChargesMax` charges in all,
   * whatever their multiplicity
   * @param deadlineMs monotonic time after which nobody waits for the answer any more
   */
  take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]>;
  /** Reads a bucket as it is; undefined when there is none (it is empty). */
  peek(key: LimitKey, deadlineMs: number): Promise<StoredBucket | undefined>;
  /** Empties the buckets of these keys; answers how many there were. */
  forget(keys: readonly LimitKey[], deadlineMs: number): Promise<number>;
  /** Resolves when the store would decide a charge now: it decides, and stores, one of its own. */
  ping(deadlineMs: number): Promise<void>;
  /** Ends connections; calls in flight reject with STORE_CLOSED. */
  close(): Promise<void>;
}

/** The most charges of one batch; a larger turn goes out as several batches. */
export const batchChargesMax = 512;

/**
 * The most charges of one request: more is refused as REQUEST_INVALID before any store is asked.
 */
export const requestChargesMax = 256;
