import { BaselineLimit, type BaselineView } from "./baseline-limit.js";
import { type LimitBounds, withinBounds } from "./limit-bounds.js";
import { isMostlyLate } from "./min-rtt.js";
import type { RttStatistic } from "./rtt-statistic.js";

/** Source: Netflix/concurrency-limits, VegasLimit. */
export interface VegasSettings {
  readonly law: "vegas";
  /** Weight of a new limit, above 0 to 1; 1: no smoothing. Default 1. */
  readonly smoothingRatio: number;
  /** Which latency of a window counts. Default the mean. */
  readonly statistic: RttStatistic;
}

/** Limit over step, where a logarithm would be too small to tell from noise. */
const limitPerStep = 30;

/** Steps of queue below which the limit grows. */
const alphaSteps = 3;

/** Steps of queue above which it shrinks, and by which it grows while there is none. */
const betaSteps = 6;

/** Queue of so many times the longest that is right is worth a probe: steps would take too long. */
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
 * - In a probe the limit is the probe's; after it, no more than capacity + 6 steps. But where the
 *   baseline is what it was, the limit is, too, unless that is less than three quarters of it.
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
export class VegasLimit extends BaselineLimit {
  readonly #settings: VegasSettings;
  #queueCount = 0;

  constructor(settings: VegasSettings, limits: LimitBounds) {
    super(limits, settings.statistic);
    this.#settings = settings;
  }

  protected override isSuspect(view: BaselineView): boolean {
    return queueOf(view) >= suspectFactor * betaSteps * stepOf(view.limit);
  }

  protected override mostFor(capacity: number): number {
    return capacity + betaSteps * stepOf(capacity);
  }

  protected override next(view: BaselineView): number {
    const { window, limit, limits } = view;
    this.#queueCount = queueOf(view);
    const isLate = isMostlyLate(window);
    const change = changeOf({ queueCount: this.#queueCount, step: stepOf(limit), isLate });
    if (change > 0 && window.inFlightMax * 2 < limit) return limit;
    const next = withinBounds(limits, limit + change);
    return limit + (next - limit) * this.#settings.smoothingRatio;
  }

  protected override ownFacts(): Readonly<Record<string, number>> {
    return { queueCount: this.#queueCount };
  }
}

function queueOf({ window: { rttMs }, limit, minRttMs }: BaselineView): number {
  if (rttMs === undefined || minRttMs === undefined || rttMs <= 0) return 0;
  return Math.max(0, Math.ceil(limit * (1 - minRttMs / rttMs)));
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
