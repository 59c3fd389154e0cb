import type { ConcurrencyLimit, ConcurrencySample, WindowedSample } from "./concurrency-limit.js";
import { type GradientSettings, gradientMin } from "./gradient-limit.js";
import { type LimitBounds, withinBounds } from "./limit-bounds.js";
import { SampleWindow } from "./sample-window.js";

/** Windows of the long mean. The newest has the weight 2 / 601. */
const longWindowCount = 600;

/** Number of first windows of which the long mean is the plain mean. */
const warmUpCount = 10;

/** Factor of a window on a long mean of more than twice the latency. */
const longDecayRatio = 0.95;

/**
 * Gradient2 as published: adjusts the limit by the ratio of the long mean latency to a window's.
 *
 * ```
 * long     = long * (1 - 2/601) + rtt * 2/601          after ten windows' plain mean
 * gradient = rttTolerance * long / rtt                 within 0.5 to 1
 * next     = limit * gradient + sqrt(limit)
 * limit    = limit + (next - limit) * smoothingRatio   while half of it or more is in use
 * ```
 *
 * Example with the defaults 1.5 and 0.2: at limit 16, long mean 50 ms and latency 100 ms, the
 * gradient is 0.75, next is 16, and the limit stays. At 150 ms the gradient is 0.5, next is 12, and
 * the limit becomes 15.2. A long mean above twice the latency falls by 5 % a window. Drops have no
 * effect.
 *
 * Use it if overload is short and rare compared with ten minutes, and normal latency drifts. Do not
 * use it if overload lasts: the long mean adapts to the queue, by half a percent a window, and the
 * limit follows. At three times the capacity it ends at `limits.max`. For that, use the baseline
 * "minRtt" (`GradientLimit`).
 *
 * Source: Netflix/concurrency-limits, Gradient2Limit (its queue is 4 by default; sqrt(limit) is
 * that of GradientLimit, and scales).
 */
export class DriftingGradientLimit implements ConcurrencyLimit {
  readonly #settings: GradientSettings;
  readonly #limits: LimitBounds;
  readonly #window: SampleWindow;
  #limit: number;
  #longRttMs = 0;
  #windowCount = 0;
  #gradient = 1;

  constructor(settings: GradientSettings, limits: LimitBounds) {
    this.#settings = settings;
    this.#limits = limits;
    this.#window = new SampleWindow(settings.statistic);
    this.#limit = withinBounds(limits, limits.initial);
  }

  get limit(): number {
    return Math.floor(this.#limit);
  }

  record(sample: ConcurrencySample): void {
    const window = this.#window.add(sample);
    if (window !== undefined) this.update(window);
  }

  update({ rttMs, inFlightMax }: WindowedSample): void {
    if (rttMs === undefined || rttMs <= 0) return;
    const longRttMs = this.#addLong(rttMs);
    if (longRttMs > 2 * rttMs) this.#longRttMs *= longDecayRatio;
    if (inFlightMax < this.#limit / 2) return;
    const { rttTolerance, smoothingRatio } = this.#settings;
    this.#gradient = Math.max(gradientMin, Math.min(1, (rttTolerance * longRttMs) / rttMs));
    const next = this.#limit * this.#gradient + Math.sqrt(this.#limit);
    const smoothed = this.#limit + (next - this.#limit) * smoothingRatio;
    this.#limit = withinBounds(this.#limits, smoothed);
  }

  facts(): Readonly<Record<string, number>> {
    const longRttMs = this.#longRttMs;
    return { gradientRatio: this.#gradient, ...(this.#windowCount > 0 ? { longRttMs } : {}) };
  }

  #addLong(rttMs: number): number {
    this.#windowCount += 1;
    const weight =
      this.#windowCount <= warmUpCount ? 1 / this.#windowCount : 2 / (longWindowCount + 1);
    this.#longRttMs += (rttMs - this.#longRttMs) * weight;
    return this.#longRttMs;
  }
}
