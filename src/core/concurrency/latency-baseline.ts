/** Period of one mean, in milliseconds. */
export const baselineWindowMs = 1_000;

/** Minimum number of latencies of a mean that counts. */
export const baselineCountMin = 10;

/** Minimum time for which the lowest mean is remembered, in milliseconds; at most twice as long. */
export const baselineMemoryMs = 300_000;

/**
 * Latency of a request without queueing: the lowest mean of one second within the last five to ten
 * minutes. It is a mean, not the fastest single request, since every service is slow compared with
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

  /** Adds the latency of a served request. */
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
    // After a silence, the old value stays until there is a new one.
    this.#olderLowestMs = this.#lowestMs ?? this.#olderLowestMs;
    this.#lowestMs = undefined;
    this.#generationEndsMs = nowMs + baselineMemoryMs;
  }
}
