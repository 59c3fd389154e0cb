import { BaselineLimit, type BaselineView } from "./baseline-limit.js";
import type { LimitBounds } from "./limit-bounds.js";
import { isMostlyLate } from "./min-rtt.js";
import type { RttStatistic } from "./rtt-statistic.js";

/** The latency without queueing that the algorithm compares with. */
type RttBaseline =
  /** The lowest, measured again at the limit, so it never includes a lasting queue. */
  | "minRtt"
  /** The long mean of Gradient2, which follows the latency and so includes queueing. */
  | "drifting";

/** Source: Netflix/concurrency-limits, Gradient2Limit. */
export interface GradientSettings {
  readonly law: "gradient";
  /** Ratio of latency to baseline that does not count as queueing, at least 1. Default 1.5. */
  readonly rttTolerance: number;
  /** Weight of a new limit, above 0 to 1. Default 0.2. */
  readonly smoothingRatio: number;
  /** Default "minRtt". */
  readonly baseline: RttBaseline;
  /** The statistic of the latencies in a window. Default the mean. */
  readonly statistic: RttStatistic;
}

/** Minimum factor of one window, which bounds the effect of an outlier. */
export const gradientMin = 0.5;

/** Maximum factor of one window. */
const gradientMax = 2;

/** Below this part of the gradient at which the limit is stable, a probe begins. */
const suspectRatio = 0.75;

/**
 * Adjusts the limit once a window by the ratio of the lowest latency (`MinRtt`) to the current one.
 *
 * ```
 * gradient = rttTolerance * minRtt / rtt               within 0.5 to 2
 * next     = limit * gradient + sqrt(limit)
 * limit    = next                                      gradient above 1: no queue yet
 *            limit + (next - limit) * smoothingRatio   else
 * ```
 *
 * Example with the defaults 1.5 and 0.2, and ten servers of 50 ms that are never idle: at a limit
 * of 19.4 the latency is 97 ms, the gradient 1.5 x 50 / 97 = 0.77, and next is 15 + 4.4 = 19.4. The
 * limit is stable there, and requests wait 47 ms. At 60 ms the gradient is 1.25 and the limit
 * becomes 28.7, at 400 ms 0.5 and 18.3.
 *
 * - If more than a tenth is dropped, the gradient is 0.5, whatever the latencies of the rest.
 * - If less than half of the limit is in use, the limit does not grow, and does not fall below
 *   twice the use. It neither rises in idle nights nor keeps a queue that has another cause.
 * - During a probe, the limit is that of the probe. After the probe, it is at most
 *   rttTolerance x capacity + sqrt(capacity). If the baseline has not changed, the limit stays
 *   unless this value is less than three quarters of it.
 *
 * Use it if latency without queueing is stable for minutes, and capacity is unknown or changes. It
 * finds the capacity from either side within half a minute, follows a loss of half of it in about
 * five seconds, and keeps a short queue. Do not use it if requests of one service differ by orders
 * of magnitude and their mix changes (define separate services), if there are fewer than ten
 * requests in a few seconds, or if latency comes from a dependency that lower concurrency does not
 * relieve.
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
