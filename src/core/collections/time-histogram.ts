import { power } from "./power.js";

/** Ratio between bucket bounds: the error of a value is at most half of the relative width. */
const growth = 1.01;

const leastMs = 0.01;

const scale = 1 / Math.log(growth);

/** Number of buckets, for times up to eleven days. */
const bucketCount = 2 + Math.ceil(Math.log(1e9 / leastMs) * scale);

/** Counts times in buckets of equal relative width, for quantiles within half a percent. */
export class TimeHistogram {
  readonly #counts = new Uint32Array(bucketCount);
  count = 0;
  sumMs = 0;

  /** Counts a time. */
  add(ms: number): void {
    const place = ms <= leastMs ? 0 : 1 + Math.floor(Math.log(ms / leastMs) * scale);
    const index = Math.min(bucketCount - 1, place);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.count += 1;
    this.sumMs += ms;
  }

  /** Adds the counts of another histogram. */
  merge(other: TimeHistogram): void {
    for (let i = 0; i < bucketCount; i += 1) {
      this.#counts[i] = (this.#counts[i] ?? 0) + (other.#counts[i] ?? 0);
    }
    this.count += other.count;
    this.sumMs += other.sumMs;
  }

  /** Removes all counts. */
  clear(): void {
    this.#counts.fill(0);
    this.count = 0;
    this.sumMs = 0;
  }

  /** Returns the time that this part of all times does not exceed. Undefined if there is none. */
  quantile(ratio: number): number | undefined {
    if (this.count === 0) return undefined;
    const rank = Math.max(1, Math.ceil(ratio * this.count));
    let seen = 0;
    for (let i = 0; i < bucketCount; i += 1) {
      seen += this.#counts[i] ?? 0;
      if (seen >= rank) return i === 0 ? 0 : leastMs * power(growth, i - 0.5);
    }
    return undefined;
  }

  /** The mean of all times. Undefined if there is none. */
  get mean(): number | undefined {
    return this.count === 0 ? undefined : this.sumMs / this.count;
  }
}
