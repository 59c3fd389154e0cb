import { TimeHistogram } from "../collections/time-histogram.js";

/** When the second attempt of a call begins, while the first still runs. */
export interface HedgeDelaySettings {
  /** Quantile of the latencies to wait for, above 0 to below 1. */
  readonly quantile: number;
  /** Minimum wait, in milliseconds. */
  readonly afterMsMin: number;
}

/** Minimum number of latencies for a quantile. */
export const hedgeSampleCountMin = 100;

/** Length of a period, in milliseconds: latencies of the last one to two periods count. */
export const hedgeMemoryMs = 30_000;

/** New latencies until the quantile is computed again: it costs as much as 100 of them. */
const quantileSampleCount = 64;

/**
 * Computes how long a call waits for its first attempt before another one begins: the `quantile` of
 * the latencies of the last 30 to 60 s, within half a percent, and at least `afterMsMin`. So with
 * 0.95 a twentieth of all calls is hedged, and the tail above the 95th percentile is shortened.
 *
 * Record each attempt that was served, and each that was cancelled because the other one won, with
 * the time that it took so far. Without the latter, slow latencies would vanish, and hedges would
 * begin earlier and earlier.
 *
 * Takes 20 kB, whatever is recorded.
 *
 * Example: latencies are spread evenly from 1 to 100 ms: with 0.95 a hedge begins after 95 ms.
 *
 * Source: J. Dean, L. A. Barroso, "The Tail at Scale", CACM 2013, "Hedged requests".
 */
export class HedgeDelay {
  readonly #settings: HedgeDelaySettings;
  /** The latencies of the present period, and those of the present and the previous one. */
  #newer = new TimeHistogram();
  #all = new TimeHistogram();
  #periodEndMs = Number.NEGATIVE_INFINITY;
  #delayMs: number | undefined;
  #delayCount = 0;

  constructor(settings: HedgeDelaySettings) {
    this.#settings = settings;
  }

  /** Adds a latency, in milliseconds. Ignores a value that is not a time. */
  record(latencyMs: number, nowMs: number): void {
    if (!(latencyMs >= 0)) return;
    this.#forget(nowMs);
    this.#newer.add(latencyMs);
    this.#all.add(latencyMs);
  }

  /** Returns the wait before a hedge, in milliseconds; undefined with fewer than 100 latencies. */
  delayMs(nowMs: number): number | undefined {
    this.#forget(nowMs);
    const { count } = this.#all;
    if (count < hedgeSampleCountMin) return undefined;
    if (this.#delayMs === undefined || count >= this.#delayCount + quantileSampleCount) {
      const { quantile, afterMsMin } = this.#settings;
      this.#delayMs = Math.max(afterMsMin, this.#all.quantile(quantile) ?? 0);
      this.#delayCount = count;
    }
    return this.#delayMs;
  }

  #forget(nowMs: number): void {
    if (nowMs < this.#periodEndMs) return;
    // After two periods without anything, nothing is left.
    if (nowMs >= this.#periodEndMs + hedgeMemoryMs) this.#newer.clear();
    const older = this.#all;
    this.#all = this.#newer;
    this.#newer = older;
    this.#newer.clear();
    this.#periodEndMs = nowMs + hedgeMemoryMs;
    this.#delayMs = undefined;
  }
}
