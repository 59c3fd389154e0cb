import { GenerationalMap } from "../../core/collections/generational-map.js";
import type { Bucket } from "../../core/limits/bucket.js";
import type { LimitKey } from "../../core/limits/limit.js";

/**
 * What this replica remembers of one live key, so that a key which is over is asked about once a
 * second and not once a request. It is the bucket and not the refusal: the limit, its size and the
 * hits are those of the charge that is held against it.
 */
export interface KeyRecord {
  /** As of the last request that was refused; undefined before one was, and after a refund. */
  seen: SeenBucket | undefined;
}

/** A bucket as the store showed it. */
export interface SeenBucket {
  readonly bucket: Bucket;
  /** The store's time of it. */
  readonly nowUs: number;
  /** Our monotonic times of the question and of the answer: the store's own lies between. */
  readonly sentMs: number;
  readonly receivedMs: number;
}

/** The most bytes of records that are remembered; those in use live on with their requests. */
const keyRecordsBytesMax = 134_217_728;

/** What a record takes with all that it may hold, in bytes, beside its key. */
const recordBytes = 300;

/** The longest that a bucket is believed: somebody may give hits back, or edit the key. */
export const refusalMsMax = 1_000;

/** The records of live keys under one policy. */
export class KeyRecords {
  readonly #records: GenerationalMap<LimitKey, KeyRecord>;

  /** @param bytesMax the most bytes of records that nobody else holds */
  constructor(bytesMax = keyRecordsBytesMax) {
    this.#records = new GenerationalMap(bytesMax, ({ length }) => recordBytes + 2 * length);
  }

  /** The record of a key, if there is one. */
  find(key: LimitKey): KeyRecord | undefined {
    return this.#records.size === 0 ? undefined : this.#records.get(key);
  }

  /** The record of a key, made when there is none. */
  recordOf(key: LimitKey): KeyRecord {
    const known = this.#records.get(key);
    if (known !== undefined) return known;
    const record: KeyRecord = { seen: undefined };
    this.#records.set(key, record);
    return record;
  }
}
