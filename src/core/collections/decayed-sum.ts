/**
 * A sum that forgets: what was added t ago counts `exp(-t / memoryMs)` of itself. A steady stream
 * of r a second therefore sums up to `r x memoryMs / 1,000`.
 */
export class DecayedSum {
  readonly #memoryMs: number;
  #sum = 0;
  #summedMs = Number.NEGATIVE_INFINITY;

  /** @param memoryMs the time constant, above 0 */
  constructor(memoryMs: number) {
    this.#memoryMs = memoryMs;
  }

  /** Adds an amount. Time that goes back counts as standing still. */
  add(amount: number, nowMs: number): void {
    this.#sum = this.at(nowMs) + amount;
    this.#summedMs = Math.max(this.#summedMs, nowMs);
  }

  /** What is left of it. */
  at(nowMs: number): number {
    return this.#sum * Math.exp(-Math.max(0, nowMs - this.#summedMs) / this.#memoryMs);
  }
}

/**
 * The mean of readings, of which the later ones count more: by `exp(-t / memoryMs)`. Silence does
 * not change it; what to make of silence is for whoever asks.
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

  /** The mean after the last reading; undefined before the first. */
  get mean(): number | undefined {
    return this.#mean;
  }

  /** How many readings it stands on, as far as they are remembered. */
  weight(nowMs: number): number {
    return this.#weight.at(nowMs);
  }

  /** Takes in a reading. */
  add(reading: number, nowMs: number): void {
    this.#sum.add(reading, nowMs);
    this.#weight.add(1, nowMs);
    this.#mean = this.#sum.at(nowMs) / this.#weight.at(nowMs);
  }
}
