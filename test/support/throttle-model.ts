/** What one `CL.THROTTLE` asks of a key whose numbers never change. */
export interface ModelledThrottle {
  readonly maxBurst: number;
  readonly count: number;
  readonly periodSeconds: number;
}

/** The five integers of a reply. */
export type ThrottleIntegers = readonly [number, number, number, number, number];

/**
 * A key of redis-cell, written from its documentation in exact integers: the theoretical arrival
 * time (TAT) of GCRA, where ours keeps a level. Times are in microseconds, times the count, so that
 * the time between two tokens, a period divided by the count, is a whole number.
 */
export class ThrottleModel {
  readonly #count: bigint;
  readonly #increment: bigint;
  readonly #tolerance: bigint;
  readonly #limit: number;
  #tat = 0n;

  constructor({ maxBurst, count, periodSeconds }: ModelledThrottle) {
    this.#count = BigInt(count);
    this.#increment = BigInt(periodSeconds) * 1_000_000n;
    this.#limit = maxBurst + 1;
    this.#tolerance = BigInt(this.#limit) * this.#increment;
  }

  /** What the key would answer, and by how much of a token it is limited, at least 0. */
  look(
    quantity: number,
    nowUs: number,
  ): { readonly reply: ThrottleIntegers; readonly over: number } {
    const now = BigInt(nowUs) * this.#count;
    const tat = this.#tat > now ? this.#tat : now;
    const increment = BigInt(quantity) * this.#increment;
    const waited = tat + increment - this.#tolerance - now;
    const isLimited = waited > 0n;
    const used = isLimited ? tat - now : tat + increment - now;
    const retry = isLimited && increment <= this.#tolerance ? this.#seconds(waited) : -1;
    const remaining = Number((this.#tolerance - used) / this.#increment);
    const over = Number(waited) / Number(this.#increment);
    return {
      reply: [isLimited ? 1 : 0, this.#limit, remaining, retry, this.#seconds(used)],
      over,
    };
  }

  /** Takes tokens, whether or not they fit. */
  take(quantity: number, nowUs: number): void {
    const now = BigInt(nowUs) * this.#count;
    this.#tat = (this.#tat > now ? this.#tat : now) + BigInt(quantity) * this.#increment;
  }

  #seconds(scaledUs: bigint): number {
    const second = this.#count * 1_000_000n;
    return Number((scaledUs + second - 1n) / second);
  }
}
