import type { ConcurrencySample, WindowedSample } from "./concurrency-limit.js";
import { type RttStatistic, statisticOf } from "./rtt-statistic.js";

/** Minimum length of a window, in ms. Source: Netflix/concurrency-limits, WindowedLimit. */
export const sampleWindowMs = 1_000;

/** Minimum round trips of a window, so that its requests were subject to the limit of its time. */
export const sampleWindowRttCount = 2;

/** Maximum time that a window waits for round trips. It waits for samples without a bound. */
export const sampleWindowMsMax = 10_000;

/** Minimum number of samples and drops of a window. Source: as above. */
export const windowSampleCountMin = 10;

/** Latencies that a window keeps for a percentile, its first ones. The mean includes all. */
export const windowRttCountMax = 1_000;

/**
 * Combines samples into windows of at least a second, ten samples and two round trips, from the
 * first sample on. A window ends with the sample that meets all three: without samples, none ends.
 *
 * Drops count, but their time does not: it shows a caller's patience, or a quick refusal.
 */
export class SampleWindow {
  readonly #statistic: RttStatistic;
  readonly #rttsMs: number[] = [];
  #firstEndMs: number | undefined;
  #rttSumMs = 0;
  #sampleCount = 0;
  #droppedCount = 0;
  #inFlightMax = 0;

  constructor(statistic: RttStatistic) {
    this.#statistic = statistic;
  }

  /** Adds a sample. @returns the window that it ended, or undefined */
  add({ startMs, endMs, inFlight, outcome }: ConcurrencySample): WindowedSample | undefined {
    if (outcome === "ignore") return undefined;
    this.#firstEndMs ??= endMs;
    this.#inFlightMax = Math.max(this.#inFlightMax, inFlight);
    if (outcome === "dropped") this.#droppedCount += 1;
    else this.#addRtt(endMs - startMs);
    if (this.#sampleCount + this.#droppedCount < windowSampleCountMin) return undefined;
    const lengthMs = endMs - this.#firstEndMs;
    if (lengthMs < this.#lengthMs()) return undefined;
    const window: WindowedSample = {
      rttMs: this.#rttMs(),
      sampleCount: this.#sampleCount,
      droppedCount: this.#droppedCount,
      inFlightMax: this.#inFlightMax,
      servedPerMs: this.#sampleCount / lengthMs,
      endMs,
    };
    this.restart();
    return window;
  }

  /** Discards the present window, so that the next one holds only samples from now on. */
  restart(): void {
    this.#rttsMs.length = 0;
    this.#firstEndMs = undefined;
    this.#rttSumMs = 0;
    this.#sampleCount = 0;
    this.#droppedCount = 0;
    this.#inFlightMax = 0;
  }

  #addRtt(rttMs: number): void {
    this.#sampleCount += 1;
    this.#rttSumMs += rttMs;
    if (this.#statistic.kind === "mean" || this.#rttsMs.length >= windowRttCountMax) return;
    this.#rttsMs.push(rttMs);
  }

  #lengthMs(): number {
    const meanMs = this.#sampleCount === 0 ? 0 : this.#rttSumMs / this.#sampleCount;
    return Math.max(sampleWindowMs, Math.min(sampleWindowMsMax, sampleWindowRttCount * meanMs));
  }

  #rttMs(): number | undefined {
    if (this.#sampleCount === 0) return undefined;
    if (this.#statistic.kind === "mean") return this.#rttSumMs / this.#sampleCount;
    return statisticOf(this.#statistic, Float64Array.from(this.#rttsMs).sort());
  }
}
