import { assert } from "../base/errors.js";
import type { ConcurrencyLimit, ConcurrencySample, WindowedSample } from "./concurrency-limit.js";
import type { LimitBounds } from "./limit-bounds.js";
import { type RttStatistic, statisticOf } from "./rtt-statistic.js";

/** A share of requests is refused while latency stands above a threshold. */
export interface LatencyShedSettings {
  readonly law: "latencyShed";
  readonly thresholdMs: number;
  /** Which statistic of the window is held against the threshold. Default the mean. */
  readonly statistic: RttStatistic;
  /** Samples a window holds, 1 to 10,000; all pass until it has filled. Default 100. */
  readonly windowCount: number;
  /** Share refused for each threshold's worth of latency above it. Default 1. */
  readonly factor: number;
  /** How long the statistic must stand above the threshold. Default 1,000. */
  readonly sustainedMs: number;
}

/** The most that is refused: what passes is what it learns from. */
export const latencyShedRatioMax = 0.9;

/** The most samples that a window may hold; each costs 16 bytes. */
export const latencyShedWindowCountMax = 10_000;

/** After so long without a sample the window is empty again: it tells of another time. */
export const latencyShedStaleMs = 10_000;

/**
 * Refuses a share of requests while the latency of the last ones stands above a threshold; its
 * limit is `limits.max`.
 *
 * ```
 * overage = (statistic - threshold) / threshold
 * ratio   = min(overage * factor, 0.9)     once it stood above for `sustainedMs`
 * ```
 *
 * Example: threshold 200 ms, factor 1, mean 250 ms: one request in four is refused; from 380 ms
 * nine in ten. All pass until the window has filled, and a single window at or below the threshold
 * begins the sustained time anew. Dropped requests count with the time that they took.
 *
 * Fits when there is a latency that may not be exceeded, and nothing else is known of the service.
 * Does not fit when latency comes from elsewhere, as from a slow dependency: refusing does not
 * lower it then, and nine in ten are refused for as long as it lasts. It swings where a window is
 * short next to the time in which a queue fills.
 *
 * Source: "latency gradient" of the text on admission in three layers (client, service, proxy).
 */
export class LatencyShed implements ConcurrencyLimit {
  readonly limit: number;
  readonly #settings: LatencyShedSettings;
  /** In the order of coming, as a ring. */
  readonly #rttsMs: Float64Array;
  /** The same in their own order; only kept for a percentile. */
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
    // Once a round the sum is taken anew, or what rounding leaves behind would add up.
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

/** Puts a value into the first `count` of a sorted row, in the place of one that goes. */
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

/** The first of `count` sorted places whose value is not less. */
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
