import { regionalBurst } from "../../src/core/limits/lending.js";
import type { Limit } from "../../src/core/limits/limit.js";

/** Drift of levels, in hits: rounding favors denial by less than 2^-20 a charge. */
const toleranceHits = 0.05;

/**
 * The oracle of one key over all regions: in any interval, at most b' + t * rate hits, and those in
 * transit when it began. `#excess` is the most of them over all intervals that end now.
 */
export class GlobalBound {
  readonly #burst: number;
  readonly #hitsPerMs: number;
  #excess = 0;
  #inTransit = 0;
  #atMs = 0;
  /** The most hits that were in transit at once. */
  inTransitMax = 0;

  constructor(limit: Limit, regionCount: number) {
    this.#hitsPerMs = (limit.hits / limit.periodUs) * 1_000;
    this.#burst = regionalBursts(limit, regionCount).reduce((sum, one) => sum + one, 0);
  }

  /** @returns whether that is more than may be */
  admit(hits: number, nowMs: number): boolean {
    this.#pass(nowMs);
    this.#excess += hits;
    return this.#excess <= this.#burst + toleranceHits;
  }

  /** Hits were charged for another region (positive), or credited or lost (negative). */
  move(hits: number, nowMs: number): void {
    this.#pass(nowMs);
    this.#inTransit += hits;
    this.inTransitMax = Math.max(this.inTransitMax, this.#inTransit);
    this.#pass(nowMs);
  }

  /** A store lost so many hits of its bucket. */
  forgive(hits: number): void {
    this.#excess -= hits;
  }

  #pass(nowMs: number): void {
    this.#excess -= (nowMs - this.#atMs) * this.#hitsPerMs;
    this.#excess = Math.max(this.#excess, -this.#inTransit);
    this.#atMs = nowMs;
  }
}

/**
 * The oracle of one key in one region: while its demand fits the region's rate and half of its
 * burst, nothing is refused.
 */
export class OwnDemandBound {
  readonly #burst: number;
  readonly #hitsPerMs: number;
  #level = 0;
  #atMs = 0;

  constructor(limit: Limit, share: { readonly index: number; readonly count: number }) {
    this.#hitsPerMs = ((limit.hits / limit.periodUs) * 1_000) / share.count;
    this.#burst = regionalBurst(limit.burst, share);
  }

  /** @returns whether so many may be refused */
  ask(hits: number, refusedHits: number, nowMs: number): boolean {
    this.#level = Math.max(0, this.#level - (nowMs - this.#atMs) * this.#hitsPerMs) + hits;
    this.#atMs = nowMs;
    return refusedHits === 0 || this.#level > Math.ceil(this.#burst / 2) - toleranceHits;
  }
}

/** The regional bursts of a limit. */
export function regionalBursts({ burst }: Limit, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => regionalBurst(burst, { index, count }));
}
