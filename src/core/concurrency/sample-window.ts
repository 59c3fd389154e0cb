import type { ConcurrencySample, WindowedSample } from "./concurrency-limit.js";
import { type RttStatistic, statisticOf } from "./rtt-statistic.js";

/** The shortest window. Source: Netflix/concurrency-limits, WindowedLimit. */
export const sampleWindowMs = 1_000;

/** Round trips that a window lasts, so that it holds requests which met the limit of its time. */
export const sampleWindowRttCount = 2;

/** The longest that a window waits for round trips; for samples it waits as long as it takes. */
export const sampleWindowMsMax = 10_000;

/** Samples and drops without which a window goes on. Source: as above. */
export const windowSampleCountMin = 10;

/** Latencies that a window keeps for a percentile, the first ones of it; the mean has them all. */
export const windowRttCountMax = 1_000;

/**
 * Adds samples up to windows of at least a second, ten samples and two round trips, from the first
 * one on. A window ends with the sample that fulfils all, so where nothing comes nothing ends.
 *
 * Drops count, but their time does not: it is that of a caller's patience, or of a quick refusal.
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

  /** Forgets what it has, so that the next window holds only what comes now. */
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
