import type { Digest } from "./keyed-hash.js";

/** Where an entry lies, until the next `add` or `delete` of the table. */
export type Place = number;

/** Parts that digests are spread over. Each grows by itself: no pause is longer than one takes. */
const shardCount = 256;

/** Words of 32 bits of an entry: its digest, then 24 bytes for the table's owner. */
const entryWords = 10;

/** Where the owner's numbers begin: words, or doubles of two words each. */
const ownWords = 4;
const ownDoubles = 2;

/** A place is the number of its shard times this, and the entry's position in it. */
const shardPlaces = 4_194_304;

/** Entries of a shard when it gets its first one. */
const entriesAtFirst = 4;

/**
 * A shard grows when more of it is in use: to find an entry takes three to four looks then, which
 * lie side by side.
 */
const usedRatioMax = 0.85;

/** Little at a time: with what is kept free, a million entries take 47 to 53 MB. */
const growthFactor = 1.125;

/** Entries side by side, empty where the last word of the digest is 0. */
interface Shard {
  words: Int32Array;
  /** The same memory. */
  doubles: Float64Array;
  entryCount: number;
  size: number;
}

/**
 * Entries of 40 bytes by digest, for a million of them and more: what one costs is known (47 to 53
 * bytes with the room that is kept free), the collector never looks into it, and to find one takes
 * one or two lines of memory, where a Map from texts takes five or more.
 *
 * Entries lie where their digest says or behind it (linear probing), and close up when one leaves.
 * Nobody can steer where, as long as the digests' secret is one.
 */
export class DigestTable {
  readonly #shards: readonly Shard[] = Array.from({ length: shardCount }, createShard);
  #size = 0;
  #nextShard = 0;
  #nextPosition = 0;

  /** Entries held. */
  get size(): number {
    return this.#size;
  }

  /** Bytes held, with the room that is kept free. */
  get bytes(): number {
    return this.#shards.reduce((sum, { words }) => sum + words.byteLength, 0);
  }

  /** Where the digest's entry lies; undefined when it has none. */
  find({ a, b, c, d }: Readonly<Digest>): Place | undefined {
    const shardIndex = a & (shardCount - 1);
    const { words, entryCount } = this.#shard(shardIndex);
    if (entryCount === 0) return undefined;
    let position = homeOf(b, entryCount);
    for (;;) {
      const at = position * entryWords;
      const last = words[at + 3];
      if (last === 0) return undefined;
      if (last === d && words[at] === a && words[at + 1] === b && words[at + 2] === c) {
        return shardIndex * shardPlaces + position;
      }
      position = position + 1 === entryCount ? 0 : position + 1;
    }
  }

  /** Makes an entry for a digest that has none, its numbers all 0. */
  add(digest: Readonly<Digest>): Place {
    const { a, b, c, d } = digest;
    const shardIndex = a & (shardCount - 1);
    const shard = this.#shard(shardIndex);
    if (shard.size + 1 > shard.entryCount * usedRatioMax) grow(shard);
    const { words, entryCount } = shard;
    const position = firstEmpty(words, homeOf(b, entryCount), entryCount);
    const at = position * entryWords;
    words.fill(0, at, at + entryWords);
    words[at] = a;
    words[at + 1] = b;
    words[at + 2] = c;
    words[at + 3] = d;
    shard.size += 1;
    this.#size += 1;
    return shardIndex * shardPlaces + position;
  }

  /** Forgets an entry; others of its shard may move. */
  delete(place: Place): void {
    const shard = this.#shardAt(place);
    const { words, entryCount } = shard;
    let hole = place % shardPlaces;
    let position = hole;
    for (;;) {
      position = position + 1 === entryCount ? 0 : position + 1;
      const at = position * entryWords;
      if (words[at + 3] === 0) break;
      // What may lie at the hole is what starts looking there or before.
      const home = homeOf(words[at + 1] ?? 0, entryCount);
      const fromHome = (position - home + entryCount) % entryCount;
      const fromHole = (position - hole + entryCount) % entryCount;
      if (fromHome < fromHole) continue;
      words.copyWithin(hole * entryWords, at, at + entryWords);
      hole = position;
    }
    words[hole * entryWords + 3] = 0;
    shard.size -= 1;
    this.#size -= 1;
  }

  /**
   * The next entry of all, in a circle that every call goes on with; undefined when none lies among
   * the next `placesMax` places.
   */
  next(placesMax: number): Place | undefined {
    for (let looked = 0; looked < placesMax; looked += 1) {
      const { words, entryCount } = this.#shard(this.#nextShard);
      const position = this.#nextPosition;
      this.#nextPosition += 1;
      if (position >= entryCount) {
        this.#nextShard = (this.#nextShard + 1) % shardCount;
        this.#nextPosition = 0;
      } else if (words[position * entryWords + 3] !== 0) {
        return this.#nextShard * shardPlaces + position;
      }
    }
    return undefined;
  }

  /** Forgets the entry that `next` has just found, and goes on with what moves to its place. */
  deleteFound(place: Place): void {
    this.delete(place);
    this.#nextPosition = place % shardPlaces;
  }

  /** One of an entry's numbers, 0 to 5, as its owner left it: whole, 32 bits, signed. */
  word(place: Place, field: number): number {
    const at = (place % shardPlaces) * entryWords + ownWords + field;
    return this.#shardAt(place).words[at] ?? 0;
  }

  setWord(place: Place, field: number, value: number): void {
    this.#shardAt(place).words[(place % shardPlaces) * entryWords + ownWords + field] = value;
  }

  /** One of an entry's numbers, 0 to 2, in the same memory as words 2n and 2n + 1. */
  double(place: Place, field: number): number {
    const at = ((place % shardPlaces) * entryWords) / 2 + ownDoubles + field;
    return this.#shardAt(place).doubles[at] ?? 0;
  }

  setDouble(place: Place, field: number, value: number): void {
    const at = ((place % shardPlaces) * entryWords) / 2 + ownDoubles + field;
    this.#shardAt(place).doubles[at] = value;
  }

  /** Forgets everything, and gives its memory back. */
  clear(): void {
    for (const shard of this.#shards) {
      shard.words = noWords;
      shard.doubles = noDoubles;
      shard.entryCount = 0;
      shard.size = 0;
    }
    this.#size = 0;
    this.#nextShard = 0;
    this.#nextPosition = 0;
  }

  #shardAt(place: Place): Shard {
    return this.#shard(Math.floor(place / shardPlaces));
  }

  #shard(index: number): Shard {
    return this.#shards[index] ?? noShard;
  }
}

const noWords = new Int32Array(0);
const noDoubles = new Float64Array(0);

function createShard(): Shard {
  return { words: noWords, doubles: noDoubles, entryCount: 0, size: 0 };
}

/** Stands where no place leads. */
const noShard: Shard = createShard();

/** Where a digest's entry lies unless others lie there: spread evenly over any number of them. */
function homeOf(b: number, entryCount: number): number {
  return Math.floor((b >>> 0) * 2 ** -32 * entryCount);
}

function firstEmpty(words: Int32Array, home: number, entryCount: number): number {
  let position = home;
  while (words[position * entryWords + 3] !== 0) {
    position = position + 1 === entryCount ? 0 : position + 1;
  }
  return position;
}

function grow(shard: Shard): void {
  const { words: before } = shard;
  const entryCount = Math.max(entriesAtFirst, Math.ceil(shard.entryCount * growthFactor));
  const words = new Int32Array(entryCount * entryWords);
  for (let at = 0; at < before.length; at += entryWords) {
    if (before[at + 3] === 0) continue;
    const position = firstEmpty(words, homeOf(before[at + 1] ?? 0, entryCount), entryCount);
    const to = position * entryWords;
    // A view of the entry for `set` would cost more than the copy.
    for (let word = 0; word < entryWords; word += 1) words[to + word] = before[at + word] ?? 0;
  }
  shard.words = words;
  shard.doubles = new Float64Array(words.buffer);
  shard.entryCount = entryCount;
}
