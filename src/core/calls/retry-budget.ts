import { DecayedSum } from "../collections/decayed-sum.js";

/** How many retries and hedges there may be. */
export interface RetryBudgetRates {
  /** Retries for each call that is served, from 0. */
  readonly budgetRatio: number;
  /** Retries a second that are allowed whatever is served, from 0. */
  readonly budgetPerSecondMin: number;
}

/** How long what is not used is kept, in milliseconds. Source: Finagle, RetryBudget, `ttl`. */
export const budgetMemoryMs = 10_000;

/** What sums of fractions may lack: ten times 0.1 is less than 1. */
const roundingError = 1e-9;

/**
 * Bounds retries and hedges together, which are attempts that nobody asked for: without a bound,
 * an overload triples itself. A token bucket as Finagle's: a call that is served puts in
 * `budgetRatio`, each second `budgetPerSecondMin`, and a retry or a hedge takes 1. So in any time
 *
 *     retries <= budgetRatio x served + budgetPerSecondMin x seconds + what was kept before
 *
 * What is kept is at most what came in over the last 10 s (an exponentially decaying sum), or 1 if
 * that is more: the burst grows with the traffic, and ends with it. It begins with what 10 s
 * without a call bring.
 *
 * It is not gRPC's bucket of fixed size, which stops retries while more than half of it is missing:
 * that has no floor, and the same burst for one call a second as for a thousand.
 *
 * Example: ratio 0.1 and 1 a second, 100 calls served a second: 11 retries a second, and 110 at
 * once after a quiet time. While nothing is served, 1 a second.
 *
 * Source: Finagle, RetryBudget; gRFC A6, "Throttling Retry Attempts and Hedged RPCs".
 */
export class RetryBudget {
  readonly #ratio: number;
  readonly #perMs: number;
  /** What is served adds its ratio. */
  readonly #recent = new DecayedSum(budgetMemoryMs);
  #tokens: number;
  #atMs = Number.POSITIVE_INFINITY;

  constructor({ budgetRatio, budgetPerSecondMin }: RetryBudgetRates) {
    this.#ratio = budgetRatio;
    this.#perMs = budgetPerSecondMin / 1_000;
    this.#tokens = this.#perMs * budgetMemoryMs;
  }

  /** A call was served, at its first attempt or a later one. */
  served(nowMs: number): void {
    this.#recent.add(this.#ratio, nowMs);
    this.#fill(nowMs, this.#ratio);
  }

  /** Retries and hedges that may begin now, with fractions, from 0. */
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
