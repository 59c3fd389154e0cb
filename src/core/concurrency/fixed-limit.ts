import type { ConcurrencyLimit } from "./concurrency-limit.js";
import type { LimitBounds } from "./limit-bounds.js";

/**
 * The law that does not learn: the limit is `limits.max`.
 *
 * Fits when the number is known, as that of a pool's connections is, and stays; it is the only one
 * next to `signal` that can be promised for a whole fleet. Does not fit when capacity changes by
 * releases or neighbours: too low it refuses for nothing, too high it refuses too late.
 */
export class FixedLimit implements ConcurrencyLimit {
  readonly limit: number;

  constructor(limits: LimitBounds) {
    this.limit = limits.max;
  }

  record(): void {}

  update(): void {}

  facts(): Readonly<Record<string, number>> {
    return {};
  }
}
