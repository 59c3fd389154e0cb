import type { Digest } from "./keyed-hash.js";

/** The location of an entry, valid until the next `add` or `delete` of the table. */
export type TableSlot = number;

/** Number of shards. Each one grows separately, which bounds the pause. */
const shardCount = 256;

/** Size of an entry in 32-bit words: its digest, then 24 bytes for the table's owner. */
const entryWords = 10;
const entryDoubles = 5;

/** Words per cache line. */
const lineWords = 16;

/** The index of the owner's values: words, or doubles of two words each. */
const ownWords = 4;
const ownDoubles = 2;

/** A slot is the shard number times 2^22 plus the position in the shard. */
const positionBits = 22;
const positionMask = 2 ** positionBits - 1;

/** Initial capacity of a shard. */
const entriesAtFirst = 4;

/** Load factor at which a shard grows. A lookup then probes three to four adjacent entries. */
const usedRatioMax = 0.85;

/** Grows in small steps: with the free space, a million entries take 47 to 53 MB. */
const growthFactor = 1.125;

/**
 * A hash table with entries of 40 bytes, keyed by digest, for a million entries and more. The cost
 * per entry is known (47 to 53 bytes with free space), the garbage collector does not scan it, and
 * a lookup reads one or two cache lines, where a Map keyed by text reads five or more.
 *
 * Uses linear probing, and moves entries back when one is deleted. Callers cannot cause collisions
 * as long as the key of the digests is secret.
 */
export class DigestTable {
  /** The entries of each shard. An entry is empty if the last word of its digest is 0. */
  readonly #words: Int32Array[] = new Array<Int32Array>(shardCount).fill(noWords);
  /** A view of the same memory. */
  readonly #doubles: Float64Array[] = new Array<Float64Array>(shardCount).fill(noDoubles);
  /** The capacity of each shard, and the entries in use. */
  readonly #entryCounts = new Int32Array(shardCount);
  readonly #sizes = new Int32Array(shardCount);
  #size = 0;
  #nextShard = 0;
  #nextPosition = 0;
  /** Receives an unused sum, so that the reads are not optimized away. */
  readonly #readSum = new Int32Array(1);

  /** The number of entries. */
  get size(): number {
    return this.#size;
  }

  /** The allocated memory in bytes. */
  get bytes(): number {
    return this.#words.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** The slot at which the lookup of a digest starts. */
  home({ a, b }: Readonly<Digest>): TableSlot {
    const shard = a & (shardCount - 1);
    return (shard << positionBits) | homeOf(b, this.#entryCounts[shard] ?? 0);
  }

  /**
   * Loads the cache lines of many entries in advance. Loaded one after the other, each would be
   * waited for (0.2 us from memory, a tenth of that here).
   *
   * @param homes results of `home`, of which the first `count` are used
   */
  readAhead(homes: Int32Array, count: number): void {
    let sum = 0;
    for (let i = 0; i < count; i += 1) {
      const home = homes[i] ?? 0;
      const words = this.#words[home >>> positionBits] ?? noWords;
      const at = (home & positionMask) * entryWords;
      // An entry and its probe sequence are mostly within two cache lines.
      sum += (words[at] ?? 0) + (words[at + lineWords] ?? 0);
    }
    this.#readSum[0] = sum;
  }

  /** Returns the slot of the digest's entry. Undefined if there is none. */
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

  /** Adds an entry for a new digest, with all values 0. */
  add(digest: Readonly<Digest>): TableSlot {
    const { a, b, c, d } = digest;
    const shard = a & (shardCount - 1);
    const size = (this.#sizes[shard] ?? 0) + 1;
    if (size > (this.#entryCounts[shard] ?? 0) * usedRatioMax) this.#grow(shard);
    const words = this.#wordsOf(shard);
    const entryCount = this.#entryCounts[shard] ?? 0;
    const position = firstEmpty(words, homeOf(b, entryCount), entryCount);
    const at = position * entryWords;
    // A call of `fill` would cost as much as the rest of this method.
    for (let word = ownWords; word < entryWords; word += 1) words[at + word] = 0;
    words[at] = a;
    words[at + 1] = b;
    words[at + 2] = c;
    words[at + 3] = d;
    this.#sizes[shard] = size;
    this.#size += 1;
    return (shard << positionBits) | position;
  }

  /** Deletes an entry. Other entries of its shard may move. */
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
      // Only entries whose probe sequence includes the gap may move into it.
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
   * Returns the next entry, circularly over all calls. Undefined if there is none among the next
   * `placesMax` slots.
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

  /**
   * Deletes the entry that `next` has returned. Iteration continues with the entry that takes its
   * slot.
   */
  deleteFound(place: TableSlot): void {
    this.delete(place);
    this.#nextPosition = place & positionMask;
  }

  /** Returns one of an entry's words, 0 to 5: a signed 32-bit integer. */
  word(place: TableSlot, field: number): number {
    const at = (place & positionMask) * entryWords + ownWords + field;
    return this.#wordsOf(place >>> positionBits)[at] ?? 0;
  }

  setWord(place: TableSlot, field: number, value: number): void {
    const at = (place & positionMask) * entryWords + ownWords + field;
    this.#wordsOf(place >>> positionBits)[at] = value;
  }

  /**
   * Returns one of an entry's doubles, 0 to 2. Double n shares its memory with words 2n and 2n + 1.
   */
  double(place: TableSlot, field: number): number {
    const at = (place & positionMask) * entryDoubles + ownDoubles + field;
    return this.#doublesOf(place)[at] ?? 0;
  }

  setDouble(place: TableSlot, field: number, value: number): void {
    const at = (place & positionMask) * entryDoubles + ownDoubles + field;
    this.#doublesOf(place)[at] = value;
  }

  /** Deletes all entries and releases the memory. */
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
      // Creating a view of the entry for `set` would cost more than the copy.
      for (let word = 0; word < entryWords; word += 1) words[to + word] = before[at + word] ?? 0;
    }
    this.#words[shard] = words;
    this.#doubles[shard] = new Float64Array(words.buffer);
    this.#entryCounts[shard] = entryCount;
  }
}

const noWords = new Int32Array(0);
const noDoubles = new Float64Array(0);

/** The preferred position of a digest, evenly distributed for any capacity. */
function homeOf(b: number, entryCount: number): number {
  return Math.floor((b >>> 0) * 2 ** -32 * entryCount);
}

/** The distance from one position to another, with wrap-around. */
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
