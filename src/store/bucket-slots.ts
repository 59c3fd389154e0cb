import { DigestTable, type TableSlot } from "../core/collections/digest-table.js";
import { type Digest, KeyedHash } from "../core/collections/keyed-hash.js";
import type { Bucket } from "../core/limits/bucket.js";
import { readShortKey, shortKey } from "../core/limits/key.js";
import type { LimitKey } from "../core/limits/limit.js";
import { batchChargesMax, type StoreRequest } from "./limit-store.js";

/** Where one bucket lies, until the next `add`, `delete` or `sweep`. */
export type Slot = TableSlot;

/** A word of an entry: how long after `tUs` the bucket counts as empty, by `encodeSpan`. */
const spanWord = 0;

/** Doubles of an entry: the bucket. */
const fields = { level: 0, tUs: 1 } as const;

/** Spans up to 2^31 us (36 min) are exact, longer ones are rounded up to these units: 1.05 s. */
const longSpanUnitUs = 1_048_576;

/**
 * Places to be passed for one bucket that is looked at: few are empty, but where a store of few
 * keys has many parts, or once held many more.
 */
const placesPerLook = 8;

/** Fewer buckets (0.4 MB) lie in the processor's own cache, and are read as fast one by one. */
const readAheadSizeMin = 8_192;

/**
 * Buckets by key, each until it has drained, for a million keys and more.
 *
 * Of a key nothing is kept but its digest. With the keys themselves, in Maps, a million of 44
 * characters took 175 MB and the look-up of one a fifth of a decision; these take 38 to 43 MB.
 */
export class BucketSlots {
  readonly #table = new DigestTable();
  readonly #hash: KeyedHash;
  readonly #short: Digest = { a: 0, b: 0, c: 0, d: 0 };
  readonly #homes = new Int32Array(batchChargesMax);
  /** The keys that were read ahead last, in their order, and their digests. */
  readonly #aheadKeys: LimitKey[] = [];
  readonly #aheadDigests = new Int32Array(4 * batchChargesMax);
  #aheadCount = 0;
  #nextAhead = 0;

  /** @param secret makes where keys lie unforeseeable, and who meets whom */
  constructor(secret: Readonly<Digest>) {
    this.#hash = new KeyedHash(secret);
  }

  /** Buckets held, drained ones that no sweep has met yet included. */
  get size(): number {
    return this.#table.size;
  }

  /** Bytes of memory in use, with the room that is kept for more keys. */
  get bytes(): number {
    return this.#table.bytes;
  }

  /** A name of nine units for the key's bucket, which every method takes in place of the key. */
  shorten(key: LimitKey): LimitKey {
    return shortKey(this.#digest(key));
  }

  /**
   * Brings the buckets that these requests ask for into the processor's cache, all at a time.
   * Where the keys are spelled out nothing is done: their digests would be made twice.
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

  /** Where the key's bucket lies, drained or not; undefined when it has none. */
  find(key: LimitKey): Slot | undefined {
    return this.#table.find(this.#digest(key));
  }

  /** Whether the bucket is as good as absent. */
  isDrained(slot: Slot, nowUs: number): boolean {
    const spanUs = decodeSpan(this.#table.word(slot, spanWord));
    return this.#table.double(slot, fields.tUs) + spanUs <= nowUs;
  }

  read(slot: Slot): Bucket {
    const level = this.#table.double(slot, fields.level);
    return { level, tUs: this.#table.double(slot, fields.tUs) };
  }

  /**
   * Replaces the bucket in a slot; from `drainedUs` on it is empty, or up to 1.05 s later if that
   * is more than 35 minutes after `tUs`.
   */
  write(slot: Slot, { level, tUs }: Bucket, drainedUs: number): void {
    this.#table.setDouble(slot, fields.level, level);
    this.#table.setDouble(slot, fields.tUs, tUs);
    this.#table.setWord(slot, spanWord, encodeSpan(drainedUs - tUs));
  }

  /** Holds the bucket of a key that has none. */
  add(key: LimitKey, bucket: Bucket, drainedUs: number): void {
    this.write(this.#table.add(this.#digest(key)), bucket, drainedUs);
  }

  /** Forgets the key's bucket, if it has one. */
  delete(key: LimitKey): void {
    const slot = this.find(key);
    if (slot !== undefined) this.#table.delete(slot);
  }

  /** Looks at the next few buckets in a circle, and forgets what has drained. */
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
    // Keys are mostly found in the order in which they were read ahead: to read one again takes
    // 60 ns, as much as the look-up.
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
 * Fits a span of 0 to 2^51 us into a word. Rounded up, a bucket is only kept longer: it holds no
 * hits then, as its limit says by itself.
 */
function encodeSpan(spanUs: number): number {
  return spanUs <= 0x7fff_ffff ? spanUs : -Math.ceil(spanUs / longSpanUnitUs);
}

function decodeSpan(word: number): number {
  return word >= 0 ? word : -word * longSpanUnitUs;
}
