import type { SignalReading } from "./concurrency-limit.js";

/** What became known of a signal. */
export interface SignalUpdate {
  /** The first of its source: what another one said before is of no account any more. */
  readonly isAnew: boolean;
  /** New readings of keys, such as databases. */
  readonly byKey: ReadonlyMap<string, number>;
  /** Keys that have no reading of their own any more. */
  readonly gone: readonly string[];
  /** What holds for all without a reading of their own; undefined: what held before. */
  readonly rest: SignalReading | undefined;
}

/** A limit that a reading has changed. */
export interface CapacityChange {
  /** As metrics name it: one of the policy's, `other`, or empty where the limit is not split. */
  readonly key: string;
  /** Permits before and after; of `other` those of the key that changed most. */
  readonly from: number;
  readonly to: number;
  readonly reading: SignalReading;
}
