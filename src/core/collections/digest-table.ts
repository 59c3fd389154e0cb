import type { Digest } from "./keyed-hash.js";

/** The location of an entry, valid until the next `add` or `delete` of the table. */
export type TableSlot = number;

/** Number of shards. Each one grows separately, which bounds the pause. */
const shardBits = 8;
const shardCount = 1 << shardBits;
const shardMask = shardCount - 1;

/** Size of an entry in 32-bit words: three of its digest, then 20 bytes for the table's owner. */
const entryWords = 8;
const entryDoubles = 4;

/** Words per cache line. */
const lineWords = 16;

/** The index of the owner's values: a word, then four words, which are two doubles. */
const ownWords = 3;
const ownDoubles = 2;

/** Entries of a page. Pages of all shards with the same index are adjacent. */
const pageBits = 5;
const pageMask = (1 << pageBits) - 1;
const pageStride = 1 << (shardBits + pageBits);

/** Entries of a slab, the unit of allocation: 1 MiB. */
const slabBits = 15;
const slabEntries = 1 << slabBits;
const slabMask = slabEntries - 1;

/** Load factor at which a shard grows. A lookup then probes three to four adjacent entries. */
const usedRatioMax = 0.85;

/** Growth of a shard. With the free space, a million entries take 38 to 43 MB. */
const growthRatio = 0.125;
const growthMin = 4;

/**
 * A hash table with entries of 32 bytes, keyed by digest, for a million entries and more. The cost
 * per entry is known (38 to 43 bytes with free space), the garbage collector does not scan it, and
 * a lookup reads one or two cache lines, while a Map keyed by text reads five or more.
 *
 * 104 bits of a digest count: the last three words, and the eight bits of the first one that choose
 * the shard. Callers cannot cause collisions as long as the key of the digests is secret.
 *
 * Uses linear probing, and moves entries back when one is deleted. A slot consists of the page of
 * its shard, the shard, and the entry of the page. So shards, which have about the same size, grow
 * into memory that is used from its start on, and no array is replaced: when arrays were replaced
 * by larger ones, they left gaps as large as the table.
 */
export class DigestTable {
  /** The entries. One is empty if the last word of its digest is 0. */
  #words: Int32Array[] = [];
  /** Views of the same memory. */
  #doubles: Float64Array[] = [];
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

  /** The memory in use, in bytes. */
  get bytes(): number {
    const entryCount = this.#entryCounts.reduce((sum, count) => sum + count, 0);
    return entryCount * entryWords * Int32Array.BYTES_PER_ELEMENT;
  }

  /** The slot at which the lookup of a digest starts. */
  home({ a, b }: Readonly<Digest>): TableSlot {
    const shard = a & shardMask;
    return slotAt(shard, homeOf(b, this.#entryCounts[shard] ?? 0));
  }

  /**
   * Loads the cache lines of many entries in advance. Loaded one after the other, each load would
   * wait for the one before (0.2 us from memory, a tenth of that here).
   *
   * @param homes results of `home`, of which the first `count` are used
   */
  readAhead(homes: Int32Array, count: number): void {
    let sum = 0;
    for (let i = 0; i < count; i += 1) {
      const home = homes[i] ?? 0;
      const words = this.#wordsOf(home);
      const at = (home & slabMask) * entryWords;
      // An entry and its probe sequence are mostly within two cache lines.
      sum += (words[at] ?? 0) + (words[at + lineWords] ?? 0);
    }
    this.#readSum[0] = sum;
  }

  /** Returns the slot of the digest's entry. Undefined if there is none. */
  find({ a, b, c, d }: Readonly<Digest>): TableSlot | undefined {
    const shard = a & shardMask;
    const entryCount = this.#entryCounts[shard] ?? 0;
    if (entryCount === 0) return undefined;
    const lastSlot = slotAt(shard, entryCount - 1);
    let slot = slotAt(shard, homeOf(b, entryCount));
    for (;;) {
      const words = this.#wordsOf(slot);
      const end = Math.min(slot | pageMask, lastSlot);
      for (let at = (slot & slabMask) * entryWords; slot <= end; slot += 1, at += entryWords) {
        const lastWord = words[at + 2];
        if (lastWord === 0) return undefined;
        if (lastWord === d && words[at] === b && words[at + 1] === c) return slot;
      }
      slot = nextSlot(end, lastSlot);
    }
  }

  /** Adds an entry for a new digest, with all values 0. */
  add({ a, b, c, d }: Readonly<Digest>): TableSlot {
    const shard = a & shardMask;
    const size = (this.#sizes[shard] ?? 0) + 1;
    if (size > (this.#entryCounts[shard] ?? 0) * usedRatioMax) this.#grow(shard);
    const entryCount = this.#entryCounts[shard] ?? 0;
    const home = slotAt(shard, homeOf(b, entryCount));
    const slot = this.#firstEmpty(home, slotAt(shard, entryCount - 1));
    const words = this.#wordsOf(slot);
    const at = (slot & slabMask) * entryWords;
    words[at] = b;
    words[at + 1] = c;
    words[at + 2] = d;
    // A call of `fill` would cost as much as the rest of this method.
    for (let word = ownWords; word < entryWords; word += 1) words[at + word] = 0;
    this.#sizes[shard] = size;
    this.#size += 1;
    return slot;
  }

  /** Deletes an entry. Other entries of its shard may move. */
  delete(deleted: TableSlot): void {
    const shard = shardOf(deleted);
    const entryCount = this.#entryCounts[shard] ?? 0;
    const lastSlot = slotAt(shard, entryCount - 1);
    let hole = deleted;
    let slot = nextSlot(deleted, lastSlot);
    for (; this.#isUsed(slot); slot = nextSlot(slot, lastSlot)) {
      // Only entries whose probe sequence includes the gap may move into it.
      const home = homeOf(this.#wordsOf(slot)[(slot & slabMask) * entryWords] ?? 0, entryCount);
      const position = positionOf(slot);
      const holePosition = positionOf(hole);
      if (stepsTo(position, home, entryCount) < stepsTo(position, holePosition, entryCount))
        continue;
      this.#copy(slot, hole);
      hole = slot;
    }
    this.#wordsOf(hole)[(hole & slabMask) * entryWords + 2] = 0;
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
        this.#nextShard = (this.#nextShard + 1) & shardMask;
        this.#nextPosition = 0;
        continue;
      }
      const slot = slotAt(this.#nextShard, position);
      if (this.#isUsed(slot)) return slot;
    }
    return undefined;
  }

  /**
   * Deletes the entry that `next` has returned. Iteration continues with the entry that takes its
   * slot.
   */
  deleteFound(slot: TableSlot): void {
    this.delete(slot);
    this.#nextPosition = positionOf(slot);
  }

  /** Returns one of an entry's words, 0 to 4: a signed 32-bit integer. */
  word(slot: TableSlot, field: number): number {
    return this.#wordsOf(slot)[(slot & slabMask) * entryWords + ownWords + field] ?? 0;
  }

  setWord(slot: TableSlot, field: number, value: number): void {
    this.#wordsOf(slot)[(slot & slabMask) * entryWords + ownWords + field] = value;
  }

  /**
   * Returns one of an entry's doubles, 0 or 1. Double n shares its memory with words 2n + 1 and
   * 2n + 2.
   */
  double(slot: TableSlot, field: number): number {
    const at = (slot & slabMask) * entryDoubles + ownDoubles + field;
    return this.#doublesOf(slot)[at] ?? 0;
  }

  setDouble(slot: TableSlot, field: number, value: number): void {
    const at = (slot & slabMask) * entryDoubles + ownDoubles + field;
    this.#doublesOf(slot)[at] = value;
  }

  /** Deletes all entries and releases the memory. */
  clear(): void {
    this.#words = [];
    this.#doubles = [];
    this.#entryCounts.fill(0);
    this.#sizes.fill(0);
    this.#size = 0;
    this.#nextShard = 0;
    this.#nextPosition = 0;
  }

  #wordsOf(slot: TableSlot): Int32Array {
    return this.#words[slot >>> slabBits] ?? noWords;
  }

  #doublesOf(slot: TableSlot): Float64Array {
    return this.#doubles[slot >>> slabBits] ?? noDoubles;
  }

  #isUsed(slot: TableSlot): boolean {
    return this.#wordsOf(slot)[(slot & slabMask) * entryWords + 2] !== 0;
  }

  /** The first empty slot from a slot on, with wrap-around. */
  #firstEmpty(from: TableSlot, lastSlot: TableSlot): TableSlot {
    let slot = from;
    while (this.#isUsed(slot)) slot = nextSlot(slot, lastSlot);
    return slot;
  }

  #copy(from: TableSlot, to: TableSlot): void {
    const source = this.#wordsOf(from);
    const target = this.#wordsOf(to);
    const fromAt = (from & slabMask) * entryWords;
    const toAt = (to & slabMask) * entryWords;
    // A loop would take a quarter more of `add`, and a view of the entry for `set` twice as much.
    target[toAt + 0] = source[fromAt + 0] ?? 0;
    target[toAt + 1] = source[fromAt + 1] ?? 0;
    target[toAt + 2] = source[fromAt + 2] ?? 0;
    target[toAt + 3] = source[fromAt + 3] ?? 0;
    target[toAt + 4] = source[fromAt + 4] ?? 0;
    target[toAt + 5] = source[fromAt + 5] ?? 0;
    target[toAt + 6] = source[fromAt + 6] ?? 0;
    target[toAt + 7] = source[fromAt + 7] ?? 0;
  }

  /**
   * Grows a shard, and moves its entries up to their new slots, the last entry first: nearly all
   * move to a slot behind all entries that have yet to move.
   */
  #grow(shard: number): void {
    const before = this.#entryCounts[shard] ?? 0;
    const entryCount = before + Math.max(growthMin, Math.floor(before * growthRatio));
    const lastSlot = slotAt(shard, entryCount - 1);
    this.#allocate(lastSlot);
    this.#entryCounts[shard] = entryCount;
    const others: number[] = [];
    for (let position = before - 1; position >= 0; position -= 1) {
      const slot = slotAt(shard, position);
      if (!this.#isUsed(slot)) continue;
      const words = this.#wordsOf(slot);
      const at = (slot & slabMask) * entryWords;
      const home = slotAt(shard, homeOf(words[at] ?? 0, entryCount));
      const target = home > slot ? this.#firstEmpty(home, lastSlot) : slot;
      if (target > slot && target >= home) this.#copy(slot, target);
      else for (let word = 0; word < entryWords; word += 1) others.push(words[at + word] ?? 0);
      words[at + 2] = 0;
    }
    for (let from = 0; from < others.length; from += entryWords) {
      const home = slotAt(shard, homeOf(others[from] ?? 0, entryCount));
      const slot = this.#firstEmpty(home, lastSlot);
      const words = this.#wordsOf(slot);
      const at = (slot & slabMask) * entryWords;
      for (let word = 0; word < entryWords; word += 1) words[at + word] = others[from + word] ?? 0;
    }
  }

  /** Allocates memory up to a slot. */
  #allocate(slot: TableSlot): void {
    while (slot >= this.#words.length * slabEntries) {
      const words = new Int32Array(slabEntries * entryWords);
      this.#words.push(words);
      this.#doubles.push(new Float64Array(words.buffer));
    }
  }
}

const noWords = new Int32Array(0);
const noDoubles = new Float64Array(0);

/** The preferred position of a digest, evenly distributed for any capacity. */
function homeOf(b: number, entryCount: number): number {
  return Math.floor((b >>> 0) * 2 ** -32 * entryCount);
}

/** The slot of a position in a shard. */
function slotAt(shard: number, position: number): TableSlot {
  const page = position >>> pageBits;
  return (page << (shardBits + pageBits)) | (shard << pageBits) | (position & pageMask);
}

function shardOf(slot: TableSlot): number {
  return (slot >>> pageBits) & shardMask;
}

function positionOf(slot: TableSlot): number {
  return ((slot >>> (shardBits + pageBits)) << pageBits) | (slot & pageMask);
}

/** The next slot of the same shard, with wrap-around. */
function nextSlot(slot: TableSlot, lastSlot: TableSlot): TableSlot {
  if (slot === lastSlot) return shardOf(slot) << pageBits;
  return (slot & pageMask) === pageMask ? slot + pageStride - pageMask : slot + 1;
}

/** The distance from one position to another, with wrap-around. */
function stepsTo(position: number, from: number, entryCount: number): number {
  return position >= from ? position - from : position - from + entryCount;
}
