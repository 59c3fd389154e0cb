import { type Priority, priorities } from "./admission-settings.js";

/** How many there are of each class. */
export class ClassCounts {
  readonly #counts = priorities.map(() => 0);

  /** @param change 1 or -1 */
  add(priority: Priority, change: number): void {
    const i = priorities.indexOf(priority);
    this.#counts[i] = (this.#counts[i] ?? 0) + change;
  }

  /** How many there are of a class. */
  of(priority: Priority): number {
    return this.#counts[priorities.indexOf(priority)] ?? 0;
  }

  /** How many there are of a class and of those above it. */
  from(priority: Priority): number {
    let sum = 0;
    for (let i = priorities.indexOf(priority); i >= 0; i -= 1) sum += this.#counts[i] ?? 0;
    return sum;
  }
}

/** The share of critical requests that may find no room although their demand is borne. */
const unluckyRatio = 0.001;

/** From this demand on critical requests are held as they are where they fill a service alone. */
const demandRatioMax = 0.95;

/**
 * Permits that critical requests may have in use where a limit keeps a service busy: above it by
 * what chance brings at once, so that about one in a thousand finds no room.
 *
 * ```
 * limit + 3 * sqrt(limit)                    three standard deviations of a Poisson number
 * limit + 2 * ln(1,000) / ln(1 / demand)     where it is more and the demand is below 0.95
 * ```
 *
 * The second is a queue in which n wait with the probability demand^n, as of exponential work that
 * comes at random, for work that varies twice as much. Critical requests that fill half of a
 * service need little room above its limit, those that need nine tenths a lot; and those that
 * overfill it gain nothing by a queue, so they get the first.
 *
 * Example: a limit of 16 is 28 for them; at a demand of 0.7 it is 16 + 39 = 55.
 *
 * @param demandRatio critical requests that ask, over all that are served: from 0
 *
 * Source: M/M/1, the distribution of the number in the system.
 */
export function withHeadroom(limit: number, demandRatio: number): number {
  const chance = 3 * Math.sqrt(limit);
  if (demandRatio >= demandRatioMax) return limit + chance;
  const queue = (2 * Math.log(1 / unluckyRatio)) / Math.log(1 / Math.max(demandRatio, 1e-9));
  return limit + Math.max(chance, queue);
}
