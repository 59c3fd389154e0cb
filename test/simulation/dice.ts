import type { Random } from "../../src/core/base/clock.js";

/** Choices from a seeded source. */
export class Dice {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** True in that part of the throws. */
  chance(ratio: number): boolean {
    return this.#random.next() < ratio;
  }

  /** A whole number from 0, below `end`. */
  below(end: number): number {
    return Math.floor(this.#random.next() * end);
  }

  /** A number from `min` to `max`, not whole. */
  between(min: number, max: number): number {
    return min + this.#random.next() * (max - min);
  }

  pick<T>(choices: readonly T[]): T {
    const choice = choices[this.below(choices.length)];
    if (choice === undefined) throw new Error("there is nothing to pick from");
    return choice;
  }
}
