/** Over how long one mean is taken, in milliseconds. */
export const baselineWindowMs = 1_000;

/** Latencies that a mean needs to count. */
export const baselineCountMin = 10;

/** How long the lowest mean is remembered: this long at least, and at most twice as long. */
export const baselineMemoryMs = 300_000;

/**
 * What a request takes when nothing is in its way: the lowest mean of a second within the last five
 * to ten minutes. A mean and not the fastest single request, or every service would be slow next to
 * its own cache hits.
 *
 * Example: means of 48, 50 and 120 ms in the last minutes: 48 ms.
 */
export class LatencyBaseline {
  #sumMs = 0;
  #count = 0;
  #windowEndsMs = Number.NEGATIVE_INFINITY;
  #lowestMs: number | undefined;
  #olderLowestMs: number | undefined;
  #generationEndsMs = Number.NEGATIVE_INFINITY;

  /** In milliseconds; undefined until a second with enough requests is over. */
  get baselineMs(): number | undefined {
    if (this.#lowestMs === undefined) return this.#olderLowestMs;
    return Math.min(this.#lowestMs, this.#olderLowestMs ?? this.#lowestMs);
  }

  /** A request was served. */
  add(latencyMs: number, nowMs: number): void {
    if (nowMs >= this.#windowEndsMs) this.#endWindow(nowMs);
    this.#sumMs += latencyMs;
    this.#count += 1;
  }

  #endWindow(nowMs: number): void {
    if (this.#count >= baselineCountMin) {
      const meanMs = this.#sumMs / this.#count;
      this.#lowestMs = Math.min(meanMs, this.#lowestMs ?? meanMs);
    }
    this.#sumMs = 0;
    this.#count = 0;
    this.#windowEndsMs = nowMs + baselineWindowMs;
    if (nowMs < this.#generationEndsMs) return;
    // After silence nothing is forgotten that has no successor.
    this.#olderLowestMs = this.#lowestMs ?? this.#olderLowestMs;
    this.#lowestMs = undefined;
    this.#generationEndsMs = nowMs + baselineMemoryMs;
  }
}
