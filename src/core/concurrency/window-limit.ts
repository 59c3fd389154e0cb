import type { ConcurrencyLimit, ConcurrencySample, WindowedSample } from "./concurrency-limit.js";
import { type LimitBounds, withinBounds } from "./limit-bounds.js";

/** Consecutive successes after which the window grows by one. */
export const windowGrowthCount = 10;

/** How far below a late request's place the window shrinks, and the tolerance at the head. */
export const windowMargin = 10;

/**
 * The adaptive window: the number of places in the queue, learned from requests that were served
 * too late. A request's place is its position in the queue on arrival or, if there is no queue, the
 * permits in use, including its own.
 *
 * ```
 * ten successes in a row:  limit + 1
 * a late one at place p:   min(limit, p - 10), and the count of successes restarts
 * at the head of the queue, place p:  dropped without work when p > limit + 10
 * ```
 *
 * Example: at 200, ten successes make 201. The request at place 201 is late: 191. The one at place
 * 205, queued before, is late too: 195 is not less than 191, so nothing changes. A request at place
 * 202 that now reaches the head is dropped, since 202 > 201.
 *
 * With windows of time, one with drops counts as a late request at its maximum of permits in use.
 *
 * Use it if requests take about the same time each and the service works on for callers who have
 * left: it finds the longest queue that is still served in time. Do not use it if service times
 * differ much (one slow request at a low place shrinks the window), or if latency should be short:
 * it keeps the queue as long as callers tolerate.
 *
 * Source: OpenZiti, "Fun with Adaptive Rate Limiting" (OpenZiti 0.32.0).
 */
export class WindowLimit implements ConcurrencyLimit {
  readonly #limits: LimitBounds;
  #limit: number;
  #successCount = 0;
  #shrinkCount = 0;

  constructor(limits: LimitBounds) {
    this.#limits = limits;
    this.#limit = Math.floor(withinBounds(limits, limits.initial));
  }

  get limit(): number {
    return this.#limit;
  }

  record({ outcome, position }: ConcurrencySample): void {
    if (outcome === "success") this.#succeed(1);
    if (outcome === "dropped") this.#shrink(position);
  }

  update({ droppedCount, sampleCount, inFlightMax }: WindowedSample): void {
    if (droppedCount > 0) this.#shrink(inFlightMax);
    else this.#succeed(sampleCount);
  }

  facts(): Readonly<Record<string, number>> {
    return { successCount: this.#successCount, shrinkCount: this.#shrinkCount };
  }

  #succeed(count: number): void {
    this.#successCount += count;
    const grownBy = Math.floor(this.#successCount / windowGrowthCount);
    this.#successCount -= grownBy * windowGrowthCount;
    this.#limit = withinBounds(this.#limits, this.#limit + grownBy);
  }

  #shrink(position: number): void {
    this.#successCount = 0;
    const shrunk = withinBounds(this.#limits, position - windowMargin);
    if (shrunk >= this.#limit) return;
    this.#limit = shrunk;
    this.#shrinkCount += 1;
  }
}
