import type { Random } from "../../src/core/base/clock.js";

/** Randomness from a seed (mulberry32): the same seed gives the same test. */
export class FakeRandom implements Random {
  #state: number;

  constructor(seed = 1) {
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
