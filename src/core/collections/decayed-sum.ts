/**
 * An exponentially decaying sum: an amount added t ago counts `exp(-t / memoryMs)` times. A steady
 * rate of r per second therefore sums up to `r x memoryMs / 1,000`.
 */
export class DecayedSum {
  readonly #memoryMs: number;
  #sum = 0;
  #summedMs = Number.NEGATIVE_INFINITY;

  /** @param memoryMs the time constant, above 0 */
  constructor(memoryMs: number) {
    this.#memoryMs = memoryMs;
  }

  /** Adds an amount. If time goes back, it counts as unchanged. */
  add(amount: number, nowMs: number): void {
    this.#sum = this.at(nowMs) + amount;
    this.#summedMs = Math.max(this.#summedMs, nowMs);
  }

  /** The sum at this time. */
  at(nowMs: number): number {
    return this.#sum * Math.exp(-Math.max(0, nowMs - this.#summedMs) / this.#memoryMs);
  }
}

/**
 * An exponentially weighted mean of readings, with weights `exp(-t / memoryMs)`. Time without
 * readings does not change it.
 */
export class DecayedMean {
  readonly #sum: DecayedSum;
  readonly #weight: DecayedSum;
  #mean: number | undefined;

  /** @param memoryMs the time constant, above 0 */
  constructor(memoryMs: number) {
    this.#sum = new DecayedSum(memoryMs);
    this.#weight = new DecayedSum(memoryMs);
  }

  /** The mean at the last reading. Undefined before the first one. */
  get mean(): number | undefined {
    return this.#mean;
  }

  /** The total weight of the readings. */
  weight(nowMs: number): number {
    return this.#weight.at(nowMs);
  }

  /** Adds a reading. */
  add(reading: number, nowMs: number): void {
    this.#sum.add(reading, nowMs);
    this.#weight.add(1, nowMs);
    this.#mean = this.#sum.at(nowMs) / this.#weight.at(nowMs);
  }
}
