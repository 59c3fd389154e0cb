import type { Bucket } from "../core/bucket.js";
import { GenerationalMap } from "../core/generational-map.js";
import type { LimitKey } from "../core/limit.js";

/**
 * What this replica remembers of one live key: its last refusals, so that a key which is over is
 * asked about once a second and not once a request.
 */
export interface KeyRecord {
  /** What the store said last; undefined before it said anything. */
  seen: SeenBucket | undefined;
  /** Those that may still hold, none of which covers another; at most `keyRefusalsMax`. */
  refusals: readonly Refusal[];
}

/** A bucket as the store showed it. */
export interface SeenBucket {
  readonly bucket: Bucket;
  /** The store's time of it. */
  readonly nowUs: number;
  /** Our monotonic time of the answer: no earlier than the store's. */
  readonly receivedMs: number;
}

/** The store said that a key was over. */
export interface Refusal {
  /** Hits that did not fit; more do not fit either. */
  readonly cost: number;
  /** Monotonic time until which they are taken not to fit. */
  readonly untilMs: number;
}

/** The most bytes of records that are remembered; those in use live on with their requests. */
const keyRecordsBytesMax = 134_217_728;

/** What a record takes with all that it may hold, in bytes, beside its key. */
const recordBytes = 400;

/** The most refusals that are remembered of one key, each of another cost. */
export const keyRefusalsMax = 4;

/** The longest that a refusal is believed: somebody may give hits back, or edit the key. */
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
    const record: KeyRecord = { seen: undefined, refusals: [] };
    this.#records.set(key, record);
    return record;
  }
}
