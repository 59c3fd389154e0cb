import type { Bucket } from "../../core/limits/bucket.js";
import type { Compensation } from "../../core/limits/compensation.js";
import type { LimitStore } from "../limit-store.js";

/** Buckets after charges were undone. */
export interface GivenBack {
  /** One a compensation, in order. */
  readonly buckets: readonly Bucket[];
  readonly nowUs: number;
}

/** A store that holds a part of the keys, and decides only what falls under it. */
export interface SplitPart extends LimitStore {
  /**
   * Undoes charges, each as `core/limits/compensation` says, by the store's own clock: however late
   * it runs, it gives back too little rather than too much. Never repeated: it could run twice.
   *
   * @param compensations at most `batchChargesMax`
   */
  giveBack(compensations: readonly Compensation[], deadlineMs: number): Promise<GivenBack>;
  /**
   * Checks at start that the store lets us in and lets us do everything, waiting until the
   * deadline.
   */
  verify(deadlineMs: number): Promise<void>;
}
