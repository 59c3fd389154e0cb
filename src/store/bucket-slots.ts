import { DigestTable, type TableSlot } from "../core/collections/digest-table.js";
import { type Digest, KeyedHash } from "../core/collections/keyed-hash.js";
import type { Bucket } from "../core/limits/bucket.js";
import { readShortKey, shortKey } from "../core/limits/key.js";
import type { LimitKey } from "../core/limits/limit.js";
import { batchChargesMax, type StoreRequest } from "./limit-store.js";

/** The position of one bucket, valid until the next `add`, `delete` or `sweep`. */
export type Slot = TableSlot;

/** Word of an entry: how long after `tUs` the bucket counts as empty, as by `encodeSpan`. */
const spanWord = 0;

/** Doubles of an entry, which contain the bucket. */
const fields = { level: 0, tUs: 1 } as const;

/** Spans below 2^31 us (36 min) are exact. Longer ones are rounded up to this unit, 1.05 s. */
const longSpanUnitUs = 1_048_576;

/**
 * Maximum number of table places to pass per bucket looked at. Few places are empty, unless a store
 * with few keys has many parts, or once held many more keys.
 */
const placesPerLook = 8;

/** Fewer buckets (0.4 MB) fit into the processor's cache, where reading ahead is not faster. */
const readAheadSizeMin = 8_192;

/**
 * Buckets by key, each kept until it has drained, for a million keys and more.
 *
 * Only the digest of each key is kept. With full keys in Maps, a million keys of 44 characters took
 * 175 MB, and one look-up took a fifth of a decision. This table takes 38 to 43 MB.
 */
export class BucketSlots {
  readonly #table = new DigestTable();
  readonly #hash: KeyedHash;
  readonly #short: Digest = { a: 0, b: 0, c: 0, d: 0 };
  readonly #homes = new Int32Array(batchChargesMax);
  /** The keys of the last read-ahead, in order, and their digests. */
  readonly #aheadKeys: LimitKey[] = [];
  readonly #aheadDigests = new Int32Array(4 * batchChargesMax);
  #aheadCount = 0;
  #nextAhead = 0;

  /** @param secret makes the positions of keys, and their collisions, unpredictable */
  constructor(secret: Readonly<Digest>) {
    this.#hash = new KeyedHash(secret);
  }

  /** Number of buckets, including drained ones that no sweep has reached yet. */
  get size(): number {
    return this.#table.size;
  }

  /** Memory in use, in bytes, including the room that is kept for more keys. */
  get bytes(): number {
    return this.#table.bytes;
  }

  /** Returns a name of nine UTF-16 units that every method accepts in place of the key. */
  shorten(key: LimitKey): LimitKey {
    return shortKey(this.#digest(key));
  }

  /**
   * Loads the buckets that these requests need into the processor's cache, all at the same time.
   * Ignores keys that are not shortened: their digests would be computed twice.
   *
   * @param batch at most `batchChargesMax` charges
   */
  readAhead(batch: readonly StoreRequest[]): void {
    this.#aheadCount = 0;
    this.#nextAhead = 0;
    if (this.#table.size < readAheadSizeMin) return;
    const homes = this.#homes;
    const digests = this.#aheadDigests;
    const short = this.#short;
    let count = 0;
    for (const { charges } of batch) {
      for (const { key } of charges) {
        if (!readShortKey(key, short)) continue;
        homes[count] = this.#table.home(short);
        this.#aheadKeys[count] = key;
        digests[4 * count] = short.a;
        digests[4 * count + 1] = short.b;
        digests[4 * count + 2] = short.c;
        digests[4 * count + 3] = short.d;
        count += 1;
      }
    }
    this.#aheadCount = count;
    this.#table.readAhead(homes, count);
  }

  /** Returns the slot of the key's bucket, drained or not; undefined if the key has none. */
  find(key: LimitKey): Slot | undefined {
    return this.#table.find(this.#digest(key));
  }

  /** Reports whether the bucket has drained, so that it counts as absent. */
  isDrained(slot: Slot, nowUs: number): boolean {
    const spanUs = decodeSpan(this.#table.word(slot, spanWord));
    return this.#table.double(slot, fields.tUs) + spanUs <= nowUs;
  }

  read(slot: Slot): Bucket {
    const level = this.#table.double(slot, fields.level);
    return { level, tUs: this.#table.double(slot, fields.tUs) };
  }

  /**
   * Replaces the bucket in a slot. It counts as empty from `drainedUs` on, or up to 1.05 s later if
   * `drainedUs` is more than 35 minutes after `tUs`.
   */
  write(slot: Slot, { level, tUs }: Bucket, drainedUs: number): void {
    this.#table.setDouble(slot, fields.level, level);
    this.#table.setDouble(slot, fields.tUs, tUs);
    this.#table.setWord(slot, spanWord, encodeSpan(drainedUs - tUs));
  }

  /** Adds the bucket of a key that has none. */
  add(key: LimitKey, bucket: Bucket, drainedUs: number): void {
    this.write(this.#table.add(this.#digest(key)), bucket, drainedUs);
  }

  /** Deletes the key's bucket, if it has one. */
  delete(key: LimitKey): void {
    const slot = this.find(key);
    if (slot !== undefined) this.#table.delete(slot);
  }

  /** Checks the next buckets, in a circle, and deletes those that have drained. */
  sweep(lookedAtMax: number, nowUs: number): void {
    const table = this.#table;
    for (let lookedAt = 0; lookedAt < lookedAtMax; lookedAt += 1) {
      const slot = table.next(placesPerLook);
      if (slot !== undefined && this.isDrained(slot, nowUs)) table.deleteFound(slot);
    }
  }

  clear(): void {
    this.#table.clear();
  }

  #digest(key: LimitKey): Readonly<Digest> {
    const short = this.#short;
    const ahead = this.#nextAhead;
    // Keys are mostly looked up in the order in which they were read ahead. Parsing a short key
    // again would take 60 ns, as much as the look-up.
    if (ahead < this.#aheadCount && this.#aheadKeys[ahead] === key) {
      this.#nextAhead += 1;
      const digests = this.#aheadDigests;
      short.a = digests[4 * ahead] ?? 0;
      short.b = digests[4 * ahead + 1] ?? 0;
      short.c = digests[4 * ahead + 2] ?? 0;
      short.d = digests[4 * ahead + 3] ?? 0;
      return short;
    }
    return readShortKey(key, short) ? short : this.#hash.ofText(key);
  }
}

/**
 * Encodes a span of 0 to 2^51 us as a word. Rounding up only keeps a bucket longer: it holds no
 * hits by then, because draining is computed from its limit.
 */
function encodeSpan(spanUs: number): number {
  return spanUs <= 0x7fff_ffff ? spanUs : -Math.ceil(spanUs / longSpanUnitUs);
}

function decodeSpan(word: number): number {
  return word >= 0 ? word : -word * longSpanUnitUs;
}
