import type { QuotaLimit } from "../../src/core/quota/quota.js";

/** A line that may not be crossed: hits beyond what drains. */
export interface DrainingBound {
  readonly hitsPerSecond: number;
  readonly hitsMax: number;
}

/**
 * The oracle of a sliding check: in every interval at most `hitsMax` more than drains in it. For
 * the level that starts empty with the worst interval is the one that is never below 0.
 */
export class DrainingLevel {
  readonly #bound: DrainingBound;
  #hits = 0;
  #atMs = 0;

  constructor(bound: DrainingBound) {
    this.#bound = bound;
  }

  /** The level as a part of what is allowed. */
  get ratio(): number {
    return this.#hits / this.#bound.hitsMax;
  }

  add(hits: number, nowMs: number): void {
    if (nowMs > this.#atMs) {
      const drained = ((nowMs - this.#atMs) * this.#bound.hitsPerSecond) / 1_000;
      this.#hits = Math.max(0, this.#hits - drained);
      this.#atMs = nowMs;
    }
    this.#hits += hits;
  }

  /** These were admitted, and nobody can know: their report is lost. */
  forgive(hits: number): void {
    this.#hits = Math.max(0, this.#hits - hits);
  }
}

/** One limit's bucket in the store: drains, admits calls, and takes what quotas have used. */
export class QuotaStore {
  readonly #limit: QuotaLimit;
  #hits = 0;
  #atMs = 0;

  constructor(limit: QuotaLimit) {
    this.#limit = limit;
  }

  level(nowMs: number): number {
    const { hits, periodUs } = this.#limit;
    this.#hits = Math.max(0, this.#hits - ((nowMs - this.#atMs) * 1_000 * hits) / periodUs);
    this.#atMs = nowMs;
    return this.#hits;
  }

  /** Calls of one hit each. @returns how many pass */
  enforce(calls: number, nowMs: number): number {
    const free = Math.floor(this.#limit.burst - this.level(nowMs));
    const admitted = Math.max(0, Math.min(calls, free));
    this.#hits += admitted;
    return admitted;
  }

  /** The role `settle`: into debt of one more burst. @returns the level after it */
  settle(hits: number, nowMs: number): number {
    const level = this.level(nowMs);
    this.#hits = Math.max(level, Math.min(level + hits, 2 * this.#limit.burst));
    return this.#hits;
  }
}
