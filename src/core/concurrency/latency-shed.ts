import { assert } from "../base/errors.js";
import type { ConcurrencyLimit, ConcurrencySample, WindowedSample } from "./concurrency-limit.js";
import type { LimitBounds } from "./limit-bounds.js";
import { type RttStatistic, statisticOf } from "./rtt-statistic.js";

/** Settings of `LatencyShed`: a part of requests is refused while latency is above a threshold. */
export interface LatencyShedSettings {
  readonly law: "latencyShed";
  readonly thresholdMs: number;
  /** The statistic of the window that is compared with the threshold. Default the mean. */
  readonly statistic: RttStatistic;
  /** Samples of a window, 1 to 10,000. All requests pass until it is full. Default 100. */
  readonly windowCount: number;
  /** Ratio of the refused part to the relative excess over the threshold. Default 1. */
  readonly factor: number;
  /** How long the statistic must be above the threshold, in milliseconds. Default 1,000. */
  readonly sustainedMs: number;
}

/** Maximum part that is refused: the algorithm learns from what passes. */
export const latencyShedRatioMax = 0.9;

/** Maximum number of samples of a window. Each takes 16 bytes. */
export const latencyShedWindowCountMax = 10_000;

/** Time without a sample after which the window is outdated and emptied, in milliseconds. */
export const latencyShedStaleMs = 10_000;

/**
 * Refuses a part of requests while the latency of recent ones is above a threshold. Its limit is
 * `limits.max`.
 *
 * ```
 * overage = (statistic - threshold) / threshold
 * ratio   = min(overage * factor, 0.9)     once it was above for `sustainedMs`
 * ```
 *
 * Example: threshold 200 ms, factor 1, mean 250 ms: one request in four is refused; from 380 ms
 * nine in ten. All requests pass until the window is full. A single window at or below the
 * threshold restarts the sustained time. Dropped requests count with the time that they took.
 *
 * Use it if latency must not exceed a threshold, and nothing else is known about the service. Do
 * not use it if latency comes from elsewhere, such as a slow dependency: refusing does not lower
 * it, and up to nine in ten requests are refused as long as it lasts. It oscillates if a window is
 * short compared with the time in which a queue fills.
 *
 * Source: "latency gradient" of the text on admission in three layers (client, service, proxy).
 */
export class LatencyShed implements ConcurrencyLimit {
  readonly limit: number;
  readonly #settings: LatencyShedSettings;
  /** Latencies in order of arrival, as a ring buffer. */
  readonly #rttsMs: Float64Array;
  /** The same values, sorted. Only kept for a percentile. */
  readonly #sortedMs: Float64Array;
  #count = 0;
  #next = 0;
  #lastEndMs = Number.NEGATIVE_INFINITY;
  #aboveSinceMs: number | undefined;
  #sumMs = 0;
  #statisticMs: number | undefined;

  constructor(settings: LatencyShedSettings, limits: LimitBounds) {
    const { windowCount, statistic } = settings;
    assert(windowCount >= 1 && windowCount <= latencyShedWindowCountMax, "a window out of bounds");
    this.#settings = settings;
    this.limit = limits.max;
    this.#rttsMs = new Float64Array(windowCount);
    this.#sortedMs = new Float64Array(statistic.kind === "percentile" ? windowCount : 0);
  }

  shedRatio(nowMs: number): number {
    const { thresholdMs, factor, sustainedMs } = this.#settings;
    if (this.#statisticMs === undefined || this.#aboveSinceMs === undefined) return 0;
    if (nowMs - this.#lastEndMs > latencyShedStaleMs) return 0;
    if (nowMs - this.#aboveSinceMs < sustainedMs) return 0;
    const overageRatio = (this.#statisticMs - thresholdMs) / thresholdMs;
    return Math.min(overageRatio * factor, latencyShedRatioMax);
  }

  record({ startMs, endMs, outcome }: ConcurrencySample): void {
    if (outcome === "ignore") return;
    this.#forgetStale(endMs);
    this.#add(endMs - startMs);
    this.#judge(endMs);
  }

  update({ rttMs, sampleCount, endMs }: WindowedSample): void {
    if (rttMs === undefined) return;
    this.#forgetStale(endMs);
    const count = Math.min(sampleCount, this.#settings.windowCount);
    for (let added = 0; added < count; added += 1) this.#add(rttMs);
    this.#judge(endMs);
  }

  facts(): Readonly<Record<string, number>> {
    return this.#statisticMs === undefined ? {} : { statisticMs: this.#statisticMs };
  }

  #forgetStale(nowMs: number): void {
    if (nowMs - this.#lastEndMs > latencyShedStaleMs) {
      this.#count = 0;
      this.#next = 0;
      this.#sumMs = 0;
      this.#statisticMs = undefined;
      this.#aboveSinceMs = undefined;
    }
    this.#lastEndMs = nowMs;
  }

  #add(rttMs: number): void {
    const goneMs = this.#count === this.#rttsMs.length ? this.#rttsMs[this.#next] : undefined;
    if (this.#sortedMs.length > 0) replaceSorted(this.#sortedMs, this.#count, { goneMs, rttMs });
    this.#rttsMs[this.#next] = rttMs;
    this.#next = (this.#next + 1) % this.#rttsMs.length;
    if (goneMs === undefined) this.#count += 1;
    this.#sumMs += rttMs - (goneMs ?? 0);
    // The sum is recomputed once a round, since rounding errors would add up.
    if (this.#next === 0) this.#sumMs = this.#rttsMs.reduce((sum, ms) => sum + ms, 0);
  }

  #judge(nowMs: number): void {
    if (this.#count < this.#rttsMs.length) return;
    const { statistic, thresholdMs } = this.#settings;
    this.#statisticMs =
      statistic.kind === "mean"
        ? this.#sumMs / this.#count
        : statisticOf(statistic, this.#sortedMs);
    if (this.#statisticMs <= thresholdMs) this.#aboveSinceMs = undefined;
    else this.#aboveSinceMs ??= nowMs;
  }
}

/** Inserts a value into the first `count` of a sorted array, and removes `goneMs`, if any. */
function replaceSorted(
  sortedMs: Float64Array,
  count: number,
  { goneMs, rttMs }: { readonly goneMs: number | undefined; readonly rttMs: number },
): void {
  let end = count;
  if (goneMs !== undefined) {
    const gonePlace = placeOf(sortedMs, count, goneMs);
    sortedMs.copyWithin(gonePlace, gonePlace + 1, count);
    end -= 1;
  }
  const place = placeOf(sortedMs, end, rttMs);
  sortedMs.copyWithin(place + 1, place, end);
  sortedMs[place] = rttMs;
}

/** Returns the first of `count` sorted places whose value is at least `valueMs`. */
function placeOf(sortedMs: Float64Array, count: number, valueMs: number): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sortedMs[middle] ?? 0) < valueMs) low = middle + 1;
    else high = middle;
  }
  return low;
}
