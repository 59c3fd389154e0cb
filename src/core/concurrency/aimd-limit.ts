import type { ConcurrencyLimit, ConcurrencySample, WindowedSample } from "./concurrency-limit.js";
import { type LimitBounds, withinBounds } from "./limit-bounds.js";

/** Source: TCP; Netflix/concurrency-limits, AIMDLimit. */
export interface AimdSettings {
  readonly law: "aimd";
  /** Permits added by a success. Default 1. */
  readonly increase: number;
  /** Factor of a drop on the limit, above 0 and below 1. Default 0.5. */
  readonly decreaseRatio: number;
}

/**
 * Additive increase, multiplicative decrease: reacts only to drops.
 *
 * ```
 * success:  limit + increase              while at least half of the limit is in use
 * drop:     min(limit - 1, limit * decreaseRatio)
 * ```
 *
 * Example with the defaults +1 and x0.5: at 20 with 12 in use, a success makes 21, and a drop then
 * 10. At 10 with 3 in use, a success leaves 10.
 *
 * A drop of a request that got its permit before the last decrease has no effect: it is due to the
 * same congestion. TCP, too, decreases once a round trip. With windows, it moves once a window.
 *
 * Use it if drops are the problem and come early: a store that refuses, a short deadline. Do not
 * use it if requests fail only very late: at any load that the service cannot carry, it then fills
 * the queue until requests take as long as callers wait.
 *
 * Source: TCP's congestion avoidance; Netflix/concurrency-limits, AIMDLimit (+1, x0.9, and a
 * timeout of 5 s; here, `lateAfter` or the deadline makes a drop).
 */
export class AimdLimit implements ConcurrencyLimit {
  readonly #settings: AimdSettings;
  readonly #limits: LimitBounds;
  #limit: number;
  #cutMs = Number.NEGATIVE_INFINITY;

  constructor(settings: AimdSettings, limits: LimitBounds) {
    this.#settings = settings;
    this.#limits = limits;
    this.#limit = withinBounds(limits, limits.initial);
  }

  get limit(): number {
    return Math.floor(this.#limit);
  }

  record({ startMs, endMs, inFlight, outcome }: ConcurrencySample): void {
    if (outcome === "success") this.#increase(inFlight);
    if (outcome === "dropped" && startMs >= this.#cutMs) this.#decrease(endMs);
  }

  update({ droppedCount, sampleCount, inFlightMax, endMs }: WindowedSample): void {
    if (droppedCount > 0) this.#decrease(endMs);
    else if (sampleCount > 0) this.#increase(inFlightMax);
  }

  facts(): Readonly<Record<string, number>> {
    return {};
  }

  #increase(inFlight: number): void {
    if (inFlight * 2 < this.#limit) return;
    this.#limit = withinBounds(this.#limits, this.#limit + this.#settings.increase);
  }

  #decrease(nowMs: number): void {
    this.#cutMs = nowMs;
    const cut = Math.min(this.#limit - 1, this.#limit * this.#settings.decreaseRatio);
    this.#limit = withinBounds(this.#limits, cut);
  }
}
