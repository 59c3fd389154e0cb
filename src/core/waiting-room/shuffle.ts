/** A permutation of the numbers from 0 up to, and without, `count`. */
export interface Shuffle {
  /** At most 2^32. */
  readonly count: number;
  /** 32 bits. */
  readonly seed: number;
}

/**
 * The place that a permutation gives to an index, both in [0, count). Nothing is stored: each takes
 * about 0.1 us.
 *
 * A balanced Feistel network permutes [0, 4^n), the smallest such range that holds them all, by
 * eight rounds of a keyed mix. What falls outside is permuted again until it is inside (cycle
 * walking), fewer than four times on average; so it is a permutation of exactly [0, count).
 *
 * Source: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002, section 3; the mix is
 * the finalizer of MurmurHash3. Whoever does not know the seed cannot choose a place by choosing
 * when to join, since the seed is drawn after everybody has joined.
 */
export function shuffled(index: number, { count, seed }: Shuffle): number {
  const halfBits = halfBitsOf(count);
  let place = index;
  do place = permuted(place, halfBits, seed);
  while (place >= count);
  return place;
}

/** The index that has a place: `shuffled` the other way around. */
export function unshuffled(place: number, { count, seed }: Shuffle): number {
  const halfBits = halfBitsOf(count);
  let index = place;
  do index = unpermuted(index, halfBits, seed);
  while (index >= count);
  return index;
}

const roundCount = 8;

function halfBitsOf(count: number): number {
  const bits = 32 - Math.clz32(Math.max(1, count - 1));
  return Math.ceil(bits / 2);
}

function permuted(value: number, halfBits: number, seed: number): number {
  const mask = 2 ** halfBits - 1;
  let left = value >>> halfBits;
  let right = value & mask;
  for (let round = 0; round < roundCount; round += 1) {
    const next = left ^ (mixed(right, round, seed) & mask);
    left = right;
    right = next;
  }
  return ((left << halfBits) | right) >>> 0;
}

function unpermuted(value: number, halfBits: number, seed: number): number {
  const mask = 2 ** halfBits - 1;
  let left = value >>> halfBits;
  let right = value & mask;
  for (let round = roundCount - 1; round >= 0; round -= 1) {
    const before = right ^ (mixed(left, round, seed) & mask);
    right = left;
    left = before;
  }
  return ((left << halfBits) | right) >>> 0;
}

/** 32 bits of a half, a round and the seed. */
function mixed(half: number, round: number, seed: number): number {
  let bits = (half ^ seed) + Math.imul(round + 1, 0x9e37_79b9);
  bits = Math.imul(bits ^ (bits >>> 16), 0x85eb_ca6b);
  bits = Math.imul(bits ^ (bits >>> 13) ^ Math.imul(seed, round + 1), 0xc2b2_ae35);
  return bits ^ (bits >>> 16);
}
