import { BaselineLimit, type BaselineView } from "./baseline-limit.js";
import { type LimitBounds, withinBounds } from "./limit-bounds.js";
import { isMostlyLate } from "./min-rtt.js";
import type { RttStatistic } from "./rtt-statistic.js";

/** Source: Netflix/concurrency-limits, VegasLimit. */
export interface VegasSettings {
  readonly law: "vegas";
  /** Weight of a new limit, above 0 to 1; 1: no smoothing. Default 1. */
  readonly smoothingRatio: number;
  /** The statistic of the latencies in a window. Default the mean. */
  readonly statistic: RttStatistic;
}

/** Ratio of limit to step, if the logarithm is too small to differ from noise. */
const limitPerStep = 30;

/** Queue, in steps, below which the limit grows. */
const alphaSteps = 3;

/** Queue, in steps, above which the limit shrinks. Also the growth in steps without a queue. */
const betaSteps = 6;

/** A queue of this many times the maximum causes a probe, because steps would take too long. */
const suspectFactor = 1.5;

/**
 * Vegas: keeps the queue, estimated from latency, between three and six steps. Adjusts the limit
 * once a window.
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
 * The limit moves by `smoothingRatio` of the way to the new one (default 1: at once).
 *
 * Example: with a limit of 14, a baseline of 50 ms, a latency of 70 ms and a step of 1, the queue
 * is ceil(14 x (1 - 5/7)) = 4, between 3 and 6, so the limit stays. It also stays at 60 ms (queue
 * 3). It becomes 15 at 55 ms (queue 2), 20 at 50 ms (queue 0) and 13 at 100 ms (queue 7).
 *
 * - If less than half of the limit is in use, the limit does not grow.
 * - During a probe, the limit is that of the probe. After the probe, it is at most capacity + 6
 *   steps. If the baseline has not changed, the limit stays unless this value is less than three
 *   quarters of it.
 *
 * The queue is therefore three to six requests, or 10 to 20 % of a large limit.
 *
 * Use it like `gradient`, for a shorter queue: it has the lowest latency of the algorithms that
 * learn. Do not use it for bursts, because a queue of six holds few requests and is empty between
 * bursts, or where `gradient` does not fit.
 *
 * Source: Brakmo and Peterson, TCP Vegas, 1995; Netflix/concurrency-limits, VegasLimit. There the
 * baseline is the least single sample, reset to an arbitrary sample now and then, so it drifts with
 * the queue, and any drop reduces the limit. Here the baseline is `MinRtt`, and the limit falls at
 * one drop in ten. The ratio for large limits is in its description; its code uses the logarithm
 * alone.
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
