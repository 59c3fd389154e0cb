import type { SignalReading } from "./concurrency-limit.js";

/** New readings of a signal. */
export interface SignalUpdate {
  /** Whether it is the first of its source: readings of an earlier source no longer count. */
  readonly isAnew: boolean;
  /** New readings of keys, such as databases. */
  readonly byKey: ReadonlyMap<string, number>;
  /** Keys that no longer have a reading of their own. */
  readonly gone: readonly string[];
  /** Reading of all keys without their own. Undefined: as before. */
  readonly rest: SignalReading | undefined;
}

/** A limit that a reading has changed. */
export interface CapacityChange {
  /** The key in metrics: one of the policy's, `other`, or empty if the limit has no keys. */
  readonly key: string;
  /** Permits before and after. For `other`, those of the key that changed most. */
  readonly from: number;
  readonly to: number;
  readonly reading: SignalReading;
}
