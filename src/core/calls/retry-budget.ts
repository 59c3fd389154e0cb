import { DecayedSum } from "../collections/decayed-sum.js";

/** Limits on retries and hedges. */
export interface RetryBudgetRates {
  /** Retries for each call that is served, from 0. */
  readonly budgetRatio: number;
  /** Retries a second that are allowed even if no call is served, from 0. */
  readonly budgetPerSecondMin: number;
}

/** How long unused tokens are kept, in milliseconds. Source: Finagle, RetryBudget, `ttl`. */
export const budgetMemoryMs = 10_000;

/** Rounding error of sums of fractions: ten times 0.1 is less than 1. */
const roundingError = 1e-9;

/**
 * Bounds retries and hedges together, which are attempts that no caller asked for: without a bound,
 * an overload triples itself. A token bucket as in Finagle: a served call adds `budgetRatio`, each
 * second adds `budgetPerSecondMin`, and a retry or a hedge takes 1. So in any period
 *
 *     retries <= budgetRatio x served + budgetPerSecondMin x seconds + what was kept before
 *
 * The bucket keeps at most what was added over the last 10 s (an exponentially decaying sum), or 1
 * if that is more, so bursts grow and end with the traffic. It begins with what 10 s without calls
 * add.
 *
 * It is not gRPC's bucket of fixed size, which stops retries while more than half of it is missing:
 * that one has no floor, and allows the same burst for one call a second as for a thousand.
 *
 * Example: ratio 0.1 and 1 a second, 100 calls served a second: 11 retries a second, and 110 at
 * once after a quiet time. While no call is served, 1 a second.
 *
 * Source: Finagle, RetryBudget; gRFC A6, "Throttling Retry Attempts and Hedged RPCs".
 */
export class RetryBudget {
  readonly #ratio: number;
  readonly #perMs: number;
  /** Each served call adds its ratio. */
  readonly #recent = new DecayedSum(budgetMemoryMs);
  #tokens: number;
  #atMs = Number.POSITIVE_INFINITY;

  constructor({ budgetRatio, budgetPerSecondMin }: RetryBudgetRates) {
    this.#ratio = budgetRatio;
    this.#perMs = budgetPerSecondMin / 1_000;
    this.#tokens = this.#perMs * budgetMemoryMs;
  }

  /** Notes that a call was served, at its first attempt or a later one. */
  served(nowMs: number): void {
    this.#recent.add(this.#ratio, nowMs);
    this.#fill(nowMs, this.#ratio);
  }

  /** Returns the retries and hedges that may begin now, with fractions, from 0. */
  left(nowMs: number): number {
    this.#fill(nowMs, 0);
    return this.#tokens;
  }

  /** Takes one retry or hedge. @returns whether there was one left; if not, do not begin it */
  take(nowMs: number): boolean {
    this.#fill(nowMs, 0);
    if (this.#tokens < 1 - roundingError) return false;
    this.#tokens = Math.max(0, this.#tokens - 1);
    return true;
  }

  #fill(nowMs: number, amount: number): void {
    const elapsedMs = Math.max(0, nowMs - this.#atMs);
    this.#atMs = nowMs;
    const tokens = this.#tokens + amount + this.#perMs * elapsedMs;
    const kept = this.#perMs * budgetMemoryMs + this.#recent.at(nowMs);
    this.#tokens = Math.min(tokens, Math.max(1, kept));
  }
}
