import type { GradientSettings, LimitBounds } from "./admission-settings.js";
import { BaselineLimit, type BaselineView } from "./baseline-limit.js";
import { isMostlyLate } from "./min-rtt.js";

/** What one window leaves at least, so that an outlier does no more harm. */
export const gradientMin = 0.5;

/** What one window multiplies by at most. */
const gradientMax = 2;

/** A gradient so far below the one at which the limit stands still is worth a dip. */
const suspectRatio = 0.75;

/** The share of time in which workers may be idle for want of a queue. */
const idleRatio = 0.005;

/** Below such a load no queue keeps all workers busy. */
const loadRatioMin = 1.03;

/** The longest queue above what keeps all workers busy once, and the shortest. */
const queueExtraMax = 8;
const queueMin = 1.5;

/** A limit of so many permits is let stand however little is in use. */
const spareMin = 50;

/**
 * The gradient of latency over the lowest one (`MinRtt`), window by window.
 *
 * ```
 * gradient = rttTolerance * minRtt / rtt               within 0.5 to 2
 * limit    = limit * gradient + queue                  gradient above 1: no queue yet
 *            limit + (next - limit) * smoothingRatio   else
 * next     = inFlight * gradient + queue
 *
 * queue    = ln((1 - 1 / load) / 0.005) / ln(load)     1.5 to capacity + 8
 * ```
 *
 * It stands still at rttTolerance x capacity + queue, by Little's law. How long a queue keeps the
 * workers busy depends on the load, the requests that ask over those that are done: with a load r
 * that comes at random, a queue of n is empty with the probability (1 - 1 / r) / r^n, 1 in 200 for
 * the queue above. At three times the capacity four requests do, at 1.1 times it takes thirty.
 * Where nobody counts who asks, as for a fleet, the queue is sqrt(limit).
 *
 * Example, by the defaults 1.5 and 0.2, 10 servers of 50 ms: at 3 times their capacity the queue is
 * ln(133) / ln(3) = 4.5, and the limit stands at 19.5. At 1.5 times the queue is 10.4 and the limit
 * 25.4.
 *
 * - More than a tenth dropped: the gradient is 0.5, whatever the latencies of the rest.
 * - Less than half of the limit in use: it does not grow, and falls to twice what is in use at
 *   most, and slowly to four times, but for 50. So it does not rise on idle nights, lets no queue
 *   stand that it is not the limit of, and is no flood gate when a calm ends.
 * - In a dip the limit is the dip's; after it, no more than the measured capacity bears:
 *   rttTolerance x capacity + queue. But where the baseline is what it was, the limit is, too,
 *   unless that is less than three quarters of it.
 *
 * Fits when latency without queueing is about the same from one minute to the next, and capacity
 * is not known or changes: it finds it from either side within half a minute, follows a loss of
 * half of it in about five seconds, and keeps a short queue. Does not fit when requests of one
 * service differ by orders of magnitude and their mix changes (give them services of their own),
 * when there are fewer than ten requests a few seconds, or when latency comes from a dependency
 * that less concurrency does not relieve.
 *
 * Source: Netflix/concurrency-limits, Gradient2Limit and GradientLimit (tolerance, smoothing, the
 * queue of sqrt(limit)); Envoy's gradient controller (growth by the gradient, at most 2); M/M/c/K,
 * the distribution of the number in the system, for the queue.
 */
export class GradientLimit extends BaselineLimit {
  readonly #settings: GradientSettings;
  #gradient = 1;
  #loadRatio: number | undefined;

  constructor(settings: GradientSettings, limits: LimitBounds) {
    super(limits, settings.statistic);
    this.#settings = settings;
  }

  protected override isSuspect(view: BaselineView): boolean {
    const { limit } = view;
    const stillGradient = 1 - Math.min(0.8, this.#queue(limit, 0.6 * limit) / limit);
    return this.#rawGradient(view) < suspectRatio * stillGradient;
  }

  protected override mostFor(capacity: number): number {
    return this.#settings.rttTolerance * capacity + this.#queue(capacity, capacity);
  }

  protected override next(view: BaselineView): number {
    const { limit, window, minRttMs } = view;
    const { gapMean = 0, rttMs } = window;
    this.#gradient = Math.max(gradientMin, Math.min(gradientMax, this.#rawGradient(view)));
    this.#loadRatio = window.loadRatio;
    const inFlight = Math.max(limit / 2, limit - gapMean);
    const capacity =
      rttMs === undefined || minRttMs === undefined ? limit : (inFlight * minRttMs) / rttMs;
    const steered = this.#gradient > 1 ? limit : inFlight;
    const next = steered * this.#gradient + this.#queue(limit, capacity);
    const smoothed =
      this.#gradient > 1 ? next : limit + (next - limit) * this.#settings.smoothingRatio;
    const used = window.inFlightMax * 2;
    if (used >= limit) return smoothed;
    // Of a fleet only what Envoys tell is seen, and a new leader has seen little of it.
    const spare = this.#loadRatio === undefined ? limit : Math.max(spareMin, 2 * used);
    const calm = spare < limit ? limit + (spare - limit) * this.#settings.smoothingRatio : limit;
    return Math.min(calm, Math.max(smoothed, used));
  }

  protected override ownFacts(): Readonly<Record<string, number>> {
    return { gradientRatio: this.#gradient };
  }

  #queue(limit: number, capacity: number): number {
    if (this.#loadRatio === undefined) return Math.sqrt(limit);
    const load = Math.max(loadRatioMin, this.#loadRatio);
    const queue = Math.log((1 - 1 / load) / idleRatio) / Math.log(load);
    return Math.max(queueMin, Math.min(queue, capacity + queueExtraMax));
  }

  #rawGradient({ window, minRttMs }: BaselineView): number {
    const { rttMs } = window;
    if (isMostlyLate(window)) return gradientMin;
    if (rttMs === undefined || minRttMs === undefined) return 1;
    return (this.#settings.rttTolerance * minRttMs) / rttMs;
  }
}
