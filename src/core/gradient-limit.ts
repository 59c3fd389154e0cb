import type { GradientSettings, LimitBounds } from "./admission-settings.js";
import type { ConcurrencyLimit, ConcurrencySample, WindowedSample } from "./concurrency-limit.js";
import { withinBounds } from "./limit-bounds.js";
import { isMostlyLate, MinRtt } from "./min-rtt.js";
import { SampleWindow } from "./sample-window.js";

/** What one window leaves at least, so that an outlier does no more harm. */
export const gradientMin = 0.5;

/** What one window multiplies by at most. */
const gradientMax = 2;

/** A gradient so far below the one at which the limit stands still is worth a dip. */
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
 * - In a dip the limit is the dip's; after it, no more than the measured capacity bears:
 *   rttTolerance x capacity + sqrt(capacity).
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
export class GradientLimit implements ConcurrencyLimit {
  readonly #settings: GradientSettings;
  readonly #limits: LimitBounds;
  readonly #window: SampleWindow;
  readonly #minRtt = new MinRtt();
  #limit: number;
  #gradient = 1;
  #rttMs: number | undefined;

  constructor(settings: GradientSettings, limits: LimitBounds) {
    this.#settings = settings;
    this.#limits = limits;
    this.#window = new SampleWindow(settings.statistic);
    this.#limit = withinBounds(limits, limits.initial);
  }

  get limit(): number {
    return Math.floor(Math.min(this.#limit, this.#minRtt.dipLimit ?? this.#limit));
  }

  shedRatio(): number {
    return 0;
  }

  dropsQueued(): boolean {
    return false;
  }

  record(sample: ConcurrencySample): void {
    const { dipLimit, settledMs } = this.#minRtt;
    if (sample.endMs < settledMs) return;
    if (dipLimit !== undefined && sample.inFlight > dipLimit) return;
    const window = this.#window.add(sample);
    if (window !== undefined) this.update(window);
  }

  update(window: WindowedSample): void {
    const rawGradient = this.#rawGradient(window);
    const stillGradient = 1 - 1 / Math.sqrt(this.#limit);
    const finding = this.#minRtt.observe(window, {
      limit: this.#limit,
      limitMin: this.#limits.min,
      isSuspect: rawGradient < suspectRatio * stillGradient,
    });
    if (finding.kind === "measured") {
      const { capacity } = finding;
      const most = this.#settings.rttTolerance * capacity + Math.sqrt(capacity);
      this.#limit = withinBounds(this.#limits, Math.min(this.#limit, most));
    }
    if (finding.kind !== "steady") return;
    this.#rttMs = window.rttMs;
    this.#gradient = Math.max(gradientMin, Math.min(gradientMax, rawGradient));
    this.#limit = withinBounds(this.#limits, this.#next(window.inFlightMax));
  }

  read(): void {}

  facts(): Readonly<Record<string, number>> {
    const { minRttMs, dipCount } = this.#minRtt;
    return {
      gradientRatio: this.#gradient,
      dipCount,
      ...(minRttMs === undefined ? {} : { minRttMs }),
      ...(this.#rttMs === undefined ? {} : { rttMs: this.#rttMs }),
    };
  }

  #rawGradient(window: WindowedSample): number {
    const { rttMs } = window;
    const { minRttMs } = this.#minRtt;
    if (isMostlyLate(window)) return gradientMin;
    if (rttMs === undefined || minRttMs === undefined) return 1;
    return (this.#settings.rttTolerance * minRttMs) / rttMs;
  }

  #next(inFlightMax: number): number {
    const next = this.#limit * this.#gradient + Math.sqrt(this.#limit);
    const smoothed =
      this.#gradient > 1
        ? next
        : this.#limit + (next - this.#limit) * this.#settings.smoothingRatio;
    const used = inFlightMax * 2;
    return used < this.#limit ? Math.min(this.#limit, Math.max(smoothed, used)) : smoothed;
  }
}
