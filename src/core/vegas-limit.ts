import type { LimitBounds, VegasSettings } from "./admission-settings.js";
import type { ConcurrencyLimit, ConcurrencySample, WindowedSample } from "./concurrency-limit.js";
import { withinBounds } from "./limit-bounds.js";
import { isMostlyLate, MinRtt } from "./min-rtt.js";
import { SampleWindow } from "./sample-window.js";

/** Limit over step, where a logarithm would be too small to tell from noise. */
const limitPerStep = 30;

/** Steps of queue below which the limit grows. */
const alphaSteps = 3;

/** Steps of queue above which it shrinks, and by which it grows while there is none. */
const betaSteps = 6;

/** Queue of so many times the longest that is right is worth a dip: steps would take too long. */
const suspectFactor = 1.5;

/**
 * Vegas: holds the queue, as latency tells it, between three and six steps, window by window.
 *
 * ```
 * step  = max(1, floor(log10(limit)), limit / 30)
 * queue = ceil(limit * (1 - minRtt / rtt))
 * limit = limit + 6 * step    queue <= step
 *         limit + step        queue <  3 * step
 *         limit - step        queue >  6 * step, or more than a tenth was dropped
 *         limit               else
 * ```
 *
 * and by `smoothingRatio` from the old limit to the new one (1 by default: at once).
 *
 * Example: at a limit of 14, baseline 50 ms, latency 70 ms, step 1, the queue is
 * ceil(14 x (1 - 5/7)) = 4, between 3 and 6: it stays. At 60 ms it is 3: stays; at 55 ms 2: 15; at
 * 50 ms 0: 20; at 100 ms 7: 13.
 *
 * - Less than half of the limit in use: it does not grow.
 * - In a dip the limit is the dip's; after it, no more than capacity + 6 steps.
 *
 * So the queue is three to six requests, and of large limits 10 to 20 %.
 *
 * Fits as `gradient` does, and keeps a shorter queue: the lowest latency of the laws that learn.
 * Does not fit when traffic comes in bursts (a queue of six holds few of them, and is empty between
 * them), or where `gradient` does not.
 *
 * Source: Brakmo and Peterson, TCP Vegas, 1995; Netflix/concurrency-limits, VegasLimit. There the
 * baseline is the least single sample, reset to a sample of any time now and then, so that it
 * drifts with the queue, and any drop shrinks; here it is `MinRtt`, and one drop in ten does. The
 * shares of large limits are those that its description has, its code has the logarithm alone.
 */
export class VegasLimit implements ConcurrencyLimit {
  readonly #settings: VegasSettings;
  readonly #limits: LimitBounds;
  readonly #window: SampleWindow;
  readonly #minRtt = new MinRtt();
  #limit: number;
  #queueCount = 0;
  #rttMs: number | undefined;

  constructor(settings: VegasSettings, limits: LimitBounds) {
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
    const queueCount = this.#queueOf(window);
    const step = stepOf(this.#limit);
    const finding = this.#minRtt.observe(window, {
      limit: this.#limit,
      limitMin: this.#limits.min,
      isSuspect: queueCount >= suspectFactor * betaSteps * step,
    });
    if (finding.kind === "measured") {
      const most = finding.capacity + betaSteps * stepOf(finding.capacity);
      this.#limit = withinBounds(this.#limits, Math.min(this.#limit, most));
    }
    if (finding.kind !== "steady") return;
    this.#rttMs = window.rttMs;
    this.#queueCount = queueCount;
    const change = changeOf({ queueCount, step, isLate: isMostlyLate(window) });
    if (change > 0 && window.inFlightMax * 2 < this.#limit) return;
    const next = withinBounds(this.#limits, this.#limit + change);
    this.#limit += (next - this.#limit) * this.#settings.smoothingRatio;
  }

  read(): void {}

  facts(): Readonly<Record<string, number>> {
    const { minRttMs, dipCount } = this.#minRtt;
    return {
      queueCount: this.#queueCount,
      dipCount,
      ...(minRttMs === undefined ? {} : { minRttMs }),
      ...(this.#rttMs === undefined ? {} : { rttMs: this.#rttMs }),
    };
  }

  #queueOf({ rttMs }: WindowedSample): number {
    const { minRttMs } = this.#minRtt;
    if (rttMs === undefined || minRttMs === undefined || rttMs <= 0) return 0;
    return Math.max(0, Math.ceil(this.#limit * (1 - minRttMs / rttMs)));
  }
}

function stepOf(limit: number): number {
  return Math.max(1, Math.floor(Math.log10(limit)), limit / limitPerStep);
}

function changeOf({ queueCount, step, isLate }: VegasView): number {
  if (isLate) return -step;
  if (queueCount <= step) return betaSteps * step;
  if (queueCount < alphaSteps * step) return step;
  return queueCount > betaSteps * step ? -step : 0;
}

interface VegasView {
  readonly queueCount: number;
  readonly step: number;
  readonly isLate: boolean;
}
