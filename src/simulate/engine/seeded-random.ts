import type { Random } from "../../core/base/clock.js";

/**
 * Random numbers from a seed: the same seed gives the same numbers everywhere.
 *
 * Source: mulberry32, by Tommy Ettinger.
 */
export class SeededRandom implements Random {
  #state: number;

  /** @param seed a whole number, of which 32 bits are used */
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  id(): string {
    const word = (): string =>
      Math.floor(this.next() * 2 ** 32)
        .toString(16)
        .padStart(8, "0");
    return word() + word();
  }
}

/**
 * Returns random numbers for one purpose. Runs with the same seed draw the same numbers for it even
 * if they differ elsewhere, so that they can be compared.
 */
export function randomStream(seed: number, purpose: string): SeededRandom {
  return new SeededRandom(streamSeed(seed, purpose));
}

/**
 * Returns the seed of `randomStream`, for programs that draw the same numbers elsewhere.
 *
 * Source: FNV-1a.
 */
export function streamSeed(seed: number, purpose: string): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let i = 0; i < purpose.length; i += 1) {
    hash = Math.imul(hash ^ purpose.charCodeAt(i), 0x01000193);
  }
  return hash;
}
