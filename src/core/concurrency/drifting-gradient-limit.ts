import type { ConcurrencyLimit, ConcurrencySample, WindowedSample } from "./concurrency-limit.js";
import { type GradientSettings, gradientMin } from "./gradient-limit.js";
import { type LimitBounds, withinBounds } from "./limit-bounds.js";
import { SampleWindow } from "./sample-window.js";

/** Windows of the long mean: the newest counts 2 / 601. */
const longWindowCount = 600;

/** Windows of which the long mean is a plain one at first. */
const warmUpCount = 10;

/** What a long mean of more than twice the latency loses in a window. */
const longDecayRatio = 0.95;

/**
 * Gradient2 as published: the gradient of the latency of a window over its own long mean.
 *
 * ```
 * long     = long * (1 - 2/601) + rtt * 2/601          after ten windows' plain mean
 * gradient = rttTolerance * long / rtt                 within 0.5 to 1
 * next     = limit * gradient + sqrt(limit)
 * limit    = limit + (next - limit) * smoothingRatio   while half of it or more is in use
 * ```
 *
 * Example, by the defaults 1.5 and 0.2: limit 16, long mean 50 ms, latency 100 ms: the gradient
 * is 0.75, next 16, and the limit stays; at 150 ms it is 0.5, next 12, and the limit 15.2. A long
 * mean above twice the latency is cut by 5 % a window. Drops teach nothing.
 *
 * Fits when overload is short and rare next to ten minutes, and what is normal moves by itself.
 * Does not fit when overload lasts: the long mean takes the queue for normal, at half a percent a
 * window, and each time the limit follows. At three times the capacity it ends at `limits.max`.
 * The baseline "minRtt" (`GradientLimit`) is there for that.
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
