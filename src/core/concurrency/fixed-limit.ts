import type { ConcurrencyLimit } from "./concurrency-limit.js";
import type { LimitBounds } from "./limit-bounds.js";

/**
 * The algorithm that does not learn: the limit is `limits.max`.
 *
 * Use it if the number is known and does not change, such as the connections of a pool. It is the
 * only algorithm besides `signal` that can be guaranteed for a whole fleet. Do not use it if
 * releases or neighbours change the capacity: too low, it refuses needlessly; too high, too late.
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
