import { BaselineLimit, type BaselineView } from "./baseline-limit.js";
import type { LimitBounds } from "./limit-bounds.js";
import { isMostlyLate } from "./min-rtt.js";
import type { RttStatistic } from "./rtt-statistic.js";

/** Whose latency without queueing a law compares with. */
type RttBaseline =
  /** The lowest, measured anew where the limit is reached: it never takes queueing for normal. */
  | "minRtt"
  /** The long mean of Gradient2, which follows what is the case, queueing too. */
  | "drifting";

/** Source: Netflix/concurrency-limits, Gradient2Limit. */
export interface GradientSettings {
  readonly law: "gradient";
  /** Latency over the baseline that is no queueing yet, at least 1. Default 1.5. */
  readonly rttTolerance: number;
  /** Weight of a new limit, above 0 to 1. Default 0.2. */
  readonly smoothingRatio: number;
  /** Default "minRtt". */
  readonly baseline: RttBaseline;
  /** Which latency of a window counts. Default the mean. */
  readonly statistic: RttStatistic;
}

/** What one window leaves at least, so that an outlier does no more harm. */
export const gradientMin = 0.5;

/** What one window multiplies by at most. */
const gradientMax = 2;

/** A gradient so far below the one at which the limit stands still is worth a probe. */
const suspectRatio = 0.75;

/**
 * The gradient of latency over the lowest one (`MinRtt`), window by window.
 *
 * ```
 * gradient = rttTolerance * minRtt / rtt               within 0.5 to 2
 * next     = limit * gradient + sqrt(limit)
 * limit    = next                                      gradient above 1: no queue yet
 *            limit + (next - limit) * smoothingRatio   else
 * ```
 *
 * Example, by the defaults 1.5 and 0.2: limit 16, baseline 50 ms, latency 100 ms: the gradient is
 * 0.75, next 16 x 0.75 + 4 = 16, so there it stands: 16 permits for 10 servers of 50 ms, and a
 * wait of 30 to 50 ms. At 60 ms the gradient is 1.25 and the limit 24, at 400 ms 0.5 and 14.4.
 *
 * - More than a tenth dropped: the gradient is 0.5, whatever the latencies of the rest.
 * - Less than half of the limit in use: it does not grow, and falls to twice what is in use at
 *   most. So it neither rises on idle nights nor lets a queue stand that it is not the limit of.
 * - In a probe the limit is the probe's; after it, no more than the measured capacity bears:
 *   rttTolerance x capacity + sqrt(capacity). But where the baseline is what it was, the limit is,
 *   too, unless that is less than three quarters of it.
 *
 * Fits when latency without queueing is about the same from one minute to the next, and capacity
 * is not known or changes: it finds it from either side within half a minute, follows a loss of
 * half of it in about five seconds, and keeps a short queue. Does not fit when requests of one
 * service differ by orders of magnitude and their mix changes (give them services of their own),
 * when there are fewer than ten requests a few seconds, or when latency comes from a dependency
 * that less concurrency does not relieve.
 *
 * Source: Netflix/concurrency-limits, Gradient2Limit and GradientLimit (tolerance, smoothing, the
 * queue of sqrt(limit)); Envoy's gradient controller (growth by the gradient, at most 2).
 */
export class GradientLimit extends BaselineLimit {
  readonly #settings: GradientSettings;
  #gradient = 1;

  constructor(settings: GradientSettings, limits: LimitBounds) {
    super(limits, settings.statistic);
    this.#settings = settings;
  }

  protected override isSuspect(view: BaselineView): boolean {
    const stillGradient = 1 - 1 / Math.sqrt(view.limit);
    return this.#rawGradient(view) < suspectRatio * stillGradient;
  }

  protected override mostFor(capacity: number): number {
    return this.#settings.rttTolerance * capacity + Math.sqrt(capacity);
  }

  protected override next(view: BaselineView): number {
    const { limit, window } = view;
    this.#gradient = Math.max(gradientMin, Math.min(gradientMax, this.#rawGradient(view)));
    const next = limit * this.#gradient + Math.sqrt(limit);
    const smoothed =
      this.#gradient > 1 ? next : limit + (next - limit) * this.#settings.smoothingRatio;
    const used = window.inFlightMax * 2;
    return used < limit ? Math.min(limit, Math.max(smoothed, used)) : smoothed;
  }

  protected override ownFacts(): Readonly<Record<string, number>> {
    return { gradientRatio: this.#gradient };
  }

  #rawGradient({ window, minRttMs }: BaselineView): number {
    const { rttMs } = window;
    if (isMostlyLate(window)) return gradientMin;
    if (rttMs === undefined || minRttMs === undefined) return 1;
    return (this.#settings.rttTolerance * minRttMs) / rttMs;
  }
}
