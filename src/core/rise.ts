import type { WindowedSample } from "./concurrency-limit.js";
import { emptyPool, type Pool, pooled } from "./dip.js";
import { isMostlyLate, measuredCountMin } from "./min-rtt.js";

/** Limits from this on are where a service's own may well be: no leaps from there. */
const lowLimitMax = 10;

/** What a leap multiplies by, below `lowLimitMax` and from it on. */
const lowLeapRatio = 2;
const leapRatio = 1.5;

/** Latency that is so many times longer after a leap is no chance: there is a queue. */
const flatRatio = 1.4;

/** From so many times the first limit on, latency that stayed is the baseline. */
const provenRatio = 4;

/** What comes of a window. */
export type RiseStep =
  /** The limit from now on; as it was where more has to be seen first. */
  | { readonly kind: "rising"; readonly limit: number }
  /** It is over. `baselineMs`: the latency that did not change over several leaps. */
  | { readonly kind: "over"; readonly baselineMs: number | undefined };

/**
 * The way up from a limit that is far too low: it doubles for as long as latency stays, since then
 * there is no queue, and what was measured on the way is the baseline. A dip would measure next to
 * nothing there.
 *
 * Few samples scatter, so one window is enough to go on, and it takes fifty samples to stop. The
 * first window is of no use: short requests end first, so it tells of those alone.
 *
 * Example: from 1, at 50 ms: 2, 4, 8 and 16 permits by the sixth second; with those a request takes
 * 80 ms at ten workers, which is 1.6 times as long, so it is over, and 50 ms is the baseline.
 *
 * Source: TCP's slow start (RFC 5681), by the sign of latency instead of a loss.
 */
export class Rise {
  readonly #fromLimit: number;
  #isOver: boolean;
  #isFirst = true;
  /** Windows that were flat, and those at the limit of now. */
  #flat: Pool = emptyPool;
  #level: Pool = emptyPool;

  constructor(fromLimit: number) {
    this.#fromLimit = fromLimit;
    this.#isOver = fromLimit >= lowLimitMax;
  }

  /** @returns undefined where it was over before */
  observe(window: WindowedSample, limit: number): RiseStep | undefined {
    if (this.#isOver) return undefined;
    const { rttMs, sampleCount, inFlightMax } = window;
    const isLate = isMostlyLate(window);
    if (this.#isFirst && inFlightMax > 1 && !isLate) {
      this.#isFirst = false;
      return { kind: "rising", limit };
    }
    if (rttMs !== undefined) this.#level = pooled(this.#level, rttMs, sampleCount);
    const isReached = inFlightMax >= Math.floor(limit);
    if (!isReached || isLate) return this.#end(limit);
    if (!this.#isLonger) {
      const { sumMs, count } = this.#level;
      this.#flat = pooled(this.#flat, sumMs / count, count);
      this.#level = emptyPool;
      return { kind: "rising", limit: limit * (limit < lowLimitMax ? lowLeapRatio : leapRatio) };
    }
    return this.#level.count < measuredCountMin ? { kind: "rising", limit } : this.#end(limit);
  }

  get #isLonger(): boolean {
    if (this.#flat.count === 0 || this.#level.count === 0) return false;
    return meanOf(this.#level) > flatRatio * meanOf(this.#flat);
  }

  #end(limit: number): RiseStep {
    this.#isOver = true;
    const isProven = this.#flat.count > 0 && limit >= provenRatio * this.#fromLimit;
    return { kind: "over", baselineMs: isProven ? meanOf(this.#flat) : undefined };
  }
}

function meanOf({ sumMs, count }: Pool): number {
  return sumMs / count;
}
