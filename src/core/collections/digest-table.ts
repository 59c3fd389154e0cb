import type { Digest } from "./keyed-hash.js";

/** Where an entry lies, until the next `add` or `delete` of the table. */
export type TableSlot = number;

/** Parts that digests are spread over. Each grows by itself: no pause is longer than one takes. */
const shardCount = 256;

/** Words of 32 bits of an entry: its digest, then 24 bytes for the table's owner. */
const entryWords = 10;
const entryDoubles = 5;

/** Words of a line of memory, which processors read as a whole. */
const lineWords = 16;

/** Where the owner's numbers begin: words, or doubles of two words each. */
const ownWords = 4;
const ownDoubles = 2;

/** A place is the number of its shard times 2^22, and the entry's position in it. */
const positionBits = 22;
const positionMask = 2 ** positionBits - 1;

/** Entries of a shard when it gets its first one. */
const entriesAtFirst = 4;

/**
 * A shard grows when more of it is in use: to find an entry takes three to four looks then, which
 * lie side by side.
 */
const usedRatioMax = 0.85;

/** Little at a time: with what is kept free, a million entries take 47 to 53 MB. */
const growthFactor = 1.125;

/**
 * Entries of 40 bytes by digest, for a million of them and more: what one costs is known (47 to 53
 * bytes with the room that is kept free), the collector never looks into it, and to find one takes
 * one or two lines of memory, where a Map from texts takes five or more.
 *
 * Entries lie where their digest says or behind it (linear probing), and close up when one leaves.
 * Nobody can steer where, as long as the digests' secret is one.
 */
export class DigestTable {
  /** A shard's entries side by side, empty where the last word of the digest is 0. */
  readonly #words: Int32Array[] = new Array<Int32Array>(shardCount).fill(noWords);
  /** The same memory. */
  readonly #doubles: Float64Array[] = new Array<Float64Array>(shardCount).fill(noDoubles);
  /** Room of each shard, and what of it is in use. */
  readonly #entryCounts = new Int32Array(shardCount);
  readonly #sizes = new Int32Array(shardCount);
  #size = 0;
  #nextShard = 0;
  #nextPosition = 0;
  /** Where a sum is left that nobody needs: what is not used is not read. */
  readonly #readSum = new Int32Array(1);

  /** Entries held. */
  get size(): number {
    return this.#size;
  }

  /** Bytes held, with the room that is kept free. */
  get bytes(): number {
    return this.#words.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Where the digest's entry begins to be looked for, whether it has one or not. */
  home({ a, b }: Readonly<Digest>): TableSlot {
    const shard = a & (shardCount - 1);
    return (shard << positionBits) | homeOf(b, this.#entryCounts[shard] ?? 0);
  }

  /**
   * Brings the lines of entries into the processor's cache, many at a time: one after the other,
   * each is waited for (0.2 us where no cache holds it, a tenth of that here).
   *
   * @param homes what `home` said, the first `count` of them
   */
  readAhead(homes: Int32Array, count: number): void {
    let sum = 0;
    for (let i = 0; i < count; i += 1) {
      const home = homes[i] ?? 0;
      const words = this.#words[home >>> positionBits] ?? noWords;
      const at = (home & positionMask) * entryWords;
      // An entry, and what it is looked for past, lie in two lines mostly.
      sum += (words[at] ?? 0) + (words[at + lineWords] ?? 0);
    }
    this.#readSum[0] = sum;
  }

  /** Where the digest's entry lies; undefined when it has none. */
  find({ a, b, c, d }: Readonly<Digest>): TableSlot | undefined {
    const shard = a & (shardCount - 1);
    const words = this.#wordsOf(shard);
    const entryCount = this.#entryCounts[shard] ?? 0;
    if (entryCount === 0) return undefined;
    let position = homeOf(b, entryCount);
    for (;;) {
      const at = position * entryWords;
      const last = words[at + 3];
      if (last === 0) return undefined;
      if (last === d && words[at] === a && words[at + 1] === b && words[at + 2] === c) {
        return (shard << positionBits) | position;
      }
      position = position + 1 === entryCount ? 0 : position + 1;
    }
  }

  /** Makes an entry for a digest that has none, its numbers all 0. */
  add(digest: Readonly<Digest>): TableSlot {
    const { a, b, c, d } = digest;
    const shard = a & (shardCount - 1);
    const size = (this.#sizes[shard] ?? 0) + 1;
    if (size > (this.#entryCounts[shard] ?? 0) * usedRatioMax) this.#grow(shard);
    const words = this.#wordsOf(shard);
    const entryCount = this.#entryCounts[shard] ?? 0;
    const position = firstEmpty(words, homeOf(b, entryCount), entryCount);
    const at = position * entryWords;
    // A call of `fill` would cost as much as all the rest.
    for (let word = ownWords; word < entryWords; word += 1) words[at + word] = 0;
    words[at] = a;
    words[at + 1] = b;
    words[at + 2] = c;
    words[at + 3] = d;
    this.#sizes[shard] = size;
    this.#size += 1;
    return (shard << positionBits) | position;
  }

  /** Forgets an entry; others of its shard may move. */
  delete(place: TableSlot): void {
    const shard = place >>> positionBits;
    const words = this.#wordsOf(shard);
    const entryCount = this.#entryCounts[shard] ?? 0;
    let hole = place & positionMask;
    let position = hole;
    for (;;) {
      position = position + 1 === entryCount ? 0 : position + 1;
      const at = position * entryWords;
      if (words[at + 3] === 0) break;
      // What may lie at the hole is what starts looking there or before.
      const home = homeOf(words[at + 1] ?? 0, entryCount);
      if (stepsTo(position, home, entryCount) < stepsTo(position, hole, entryCount)) continue;
      const to = hole * entryWords;
      for (let word = 0; word < entryWords; word += 1) words[to + word] = words[at + word] ?? 0;
      hole = position;
    }
    words[hole * entryWords + 3] = 0;
    this.#sizes[shard] = (this.#sizes[shard] ?? 0) - 1;
    this.#size -= 1;
  }

  /**
   * The next entry of all, in a circle that every call goes on with; undefined when none lies among
   * the next `placesMax` places.
   */
  next(placesMax: number): TableSlot | undefined {
    for (let looked = 0; looked < placesMax; looked += 1) {
      const position = this.#nextPosition;
      this.#nextPosition += 1;
      if (position >= (this.#entryCounts[this.#nextShard] ?? 0)) {
        this.#nextShard = (this.#nextShard + 1) % shardCount;
        this.#nextPosition = 0;
      } else if (this.#wordsOf(this.#nextShard)[position * entryWords + 3] !== 0) {
        return (this.#nextShard << positionBits) | position;
      }
    }
    return undefined;
  }

  /** Forgets the entry that `next` has just found, and goes on with what moves to its place. */
  deleteFound(place: TableSlot): void {
    this.delete(place);
    this.#nextPosition = place & positionMask;
  }

  /** One of an entry's numbers, 0 to 5, as its owner left it: whole, 32 bits, signed. */
  word(place: TableSlot, field: number): number {
    const at = (place & positionMask) * entryWords + ownWords + field;
    return this.#wordsOf(place >>> positionBits)[at] ?? 0;
  }

  setWord(place: TableSlot, field: number, value: number): void {
    const at = (place & positionMask) * entryWords + ownWords + field;
    this.#wordsOf(place >>> positionBits)[at] = value;
  }

  /** One of an entry's numbers, 0 to 2, in the same memory as words 2n and 2n + 1. */
  double(place: TableSlot, field: number): number {
    const at = (place & positionMask) * entryDoubles + ownDoubles + field;
    return this.#doublesOf(place)[at] ?? 0;
  }

  setDouble(place: TableSlot, field: number, value: number): void {
    const at = (place & positionMask) * entryDoubles + ownDoubles + field;
    this.#doublesOf(place)[at] = value;
  }

  /** Forgets everything, and gives its memory back. */
  clear(): void {
    this.#words.fill(noWords);
    this.#doubles.fill(noDoubles);
    this.#entryCounts.fill(0);
    this.#sizes.fill(0);
    this.#size = 0;
    this.#nextShard = 0;
    this.#nextPosition = 0;
  }

  #wordsOf(shard: number): Int32Array {
    return this.#words[shard] ?? noWords;
  }

  #doublesOf(place: TableSlot): Float64Array {
    return this.#doubles[place >>> positionBits] ?? noDoubles;
  }

  #grow(shard: number): void {
    const before = this.#wordsOf(shard);
    const count = this.#entryCounts[shard] ?? 0;
    const entryCount = Math.max(entriesAtFirst, Math.ceil(count * growthFactor));
    const words = new Int32Array(entryCount * entryWords);
    for (let at = 0; at < before.length; at += entryWords) {
      if (before[at + 3] === 0) continue;
      const position = firstEmpty(words, homeOf(before[at + 1] ?? 0, entryCount), entryCount);
      const to = position * entryWords;
      // A view of the entry for `set` would cost more than the copy.
      for (let word = 0; word < entryWords; word += 1) words[to + word] = before[at + word] ?? 0;
    }
    this.#words[shard] = words;
    this.#doubles[shard] = new Float64Array(words.buffer);
    this.#entryCounts[shard] = entryCount;
  }
}

const noWords = new Int32Array(0);
const noDoubles = new Float64Array(0);

/** Where a digest's entry lies unless others lie there: spread evenly over any number of them. */
function homeOf(b: number, entryCount: number): number {
  return Math.floor((b >>> 0) * 2 ** -32 * entryCount);
}

/** How far a position lies behind another, around the end. */
function stepsTo(position: number, from: number, entryCount: number): number {
  return position >= from ? position - from : position - from + entryCount;
}

function firstEmpty(words: Int32Array, home: number, entryCount: number): number {
  let position = home;
  while (words[position * entryWords + 3] !== 0) {
    position = position + 1 === entryCount ? 0 : position + 1;
  }
  return position;
}
