import { GenerationalMap } from "../../core/collections/generational-map.js";
import type { Bucket } from "../../core/limits/bucket.js";
import type { LimitKey } from "../../core/limits/limit.js";

/**
 * What this replica knows of one active key, so that a key over its limit causes one store call per
 * second and not one per request. The record holds the bucket's state, not a denial: the charge to
 * evaluate supplies the limit, its size and the hits.
 */
export interface KeyRecord {
  /** The bucket at the last denial. Undefined before the first denial and after a refund. */
  seen: SeenBucket | undefined;
}

/** The state of a bucket as the store returned it. */
export interface SeenBucket {
  readonly bucket: Bucket;
  /** The store's clock at that moment. */
  readonly nowUs: number;
  /**
   * Monotonic times of the store call and of its result. The store's own time lies between them.
   */
  readonly sentMs: number;
  readonly receivedMs: number;
}

/** Maximum size of all records, in bytes. Records in use outlive their eviction. */
const keyRecordsBytesMax = 134_217_728;

/** The size of a record with everything it may hold, without its key, in bytes. */
const recordBytes = 300;

/** Maximum age of a cached bucket state: hits may be refunded, or an operator may edit the key. */
export const refusalMsMax = 1_000;

/** The records of active keys under one policy. */
export class KeyRecords {
  readonly #records: GenerationalMap<LimitKey, KeyRecord>;

  /** @param bytesMax maximum size of the records that no query refers to, in bytes */
  constructor(bytesMax = keyRecordsBytesMax) {
    this.#records = new GenerationalMap(bytesMax, ({ length }) => recordBytes + 2 * length);
  }

  /** Returns the record of a key, if there is one. */
  find(key: LimitKey): KeyRecord | undefined {
    return this.#records.size === 0 ? undefined : this.#records.get(key);
  }

  /** Returns the record of a key, and creates it if needed. */
  recordOf(key: LimitKey): KeyRecord {
    const known = this.#records.get(key);
    if (known !== undefined) return known;
    const record: KeyRecord = { seen: undefined };
    this.#records.set(key, record);
    return record;
  }
}
