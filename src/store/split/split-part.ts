import type { Bucket } from "../../core/limits/bucket.js";
import type { Compensation } from "../../core/limits/compensation.js";
import type { LimitStore } from "../limit-store.js";

/** The buckets after charges were undone. */
export interface GivenBack {
  /** One per compensation, in order. */
  readonly buckets: readonly Bucket[];
  readonly nowUs: number;
}

/** A store that holds a part of the keys and decides only the charges on these keys. */
export interface SplitPart extends LimitStore {
  /**
   * Undoes charges as described in `core/limits/compensation`, on the store's own clock. However
   * late it runs, it gives back too little rather than too much. Never retried: it could run twice.
   *
   * @param compensations at most `batchChargesMax`
   */
  giveBack(compensations: readonly Compensation[], deadlineMs: number): Promise<GivenBack>;
  /**
   * Checks at start that the store accepts the connection and permits all required commands. Waits
   * until the deadline.
   */
  verify(deadlineMs: number): Promise<void>;
}
