/** A permutation of the numbers from 0, below `count`. */
export interface Shuffle {
  /** At most 2^32. */
  readonly count: number;
  /** 32 bits. */
  readonly seed: number;
}

/**
 * Returns the place that a permutation gives to an index, both in [0, count). It stores nothing and
 * takes about 0.1 us.
 *
 * A Feistel network permutes [0, 2^n), the smallest such range that contains all, in rounds that
 * alternately mix one half into the other. A result outside of [0, count) is permuted again until
 * it is inside (cycle walking), less than twice on average, so it permutes exactly [0, count).
 *
 * Visitors cannot choose a place by choosing when to join: the seed is drawn after all have joined.
 *
 * Source: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002; the mix is the
 * finalizer of MurmurHash3.
 */
export function shuffled(index: number, { count, seed }: Shuffle): number {
  const bits = bitsOf(count);
  let place = index;
  do place = permuted(place, bits, seed);
  while (place >= count);
  return place;
}

/** Returns the index that has a place: the inverse of `shuffled`. */
export function unshuffled(place: number, { count, seed }: Shuffle): number {
  const bits = bitsOf(count);
  let index = place;
  do index = unpermuted(index, bits, seed);
  while (index >= count);
  return index;
}

/** Number of rounds. Even, so that both halves are mixed equally often. */
const roundCount = 8;

/** Returns the bits of the range that is permuted: at least two, so that there are two halves. */
function bitsOf(count: number): number {
  return Math.max(2, 32 - Math.clz32(Math.max(1, count - 1)));
}

function permuted(value: number, bits: number, seed: number): number {
  const lowBits = bits >>> 1;
  const lowMask = (1 << lowBits) - 1;
  const highMask = (1 << (bits - lowBits)) - 1;
  let high = value >>> lowBits;
  let low = value & lowMask;
  for (let round = 0; round < roundCount; round += 2) {
    high ^= mixed(low, round, seed) & highMask;
    low ^= mixed(high, round + 1, seed) & lowMask;
  }
  return ((high << lowBits) | low) >>> 0;
}

function unpermuted(value: number, bits: number, seed: number): number {
  const lowBits = bits >>> 1;
  const lowMask = (1 << lowBits) - 1;
  const highMask = (1 << (bits - lowBits)) - 1;
  let high = value >>> lowBits;
  let low = value & lowMask;
  for (let round = roundCount - 2; round >= 0; round -= 2) {
    low ^= mixed(high, round + 1, seed) & lowMask;
    high ^= mixed(low, round, seed) & highMask;
  }
  return ((high << lowBits) | low) >>> 0;
}

/** Returns 32 bits that depend on a half, a round and the seed. */
function mixed(half: number, round: number, seed: number): number {
  let bits = half ^ Math.imul(seed ^ Math.imul(round + 1, 0x9e37_79b9), 0x85eb_ca6b);
  bits = Math.imul(bits ^ (bits >>> 16), 0x85eb_ca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2_ae35);
  return bits ^ (bits >>> 16);
}
