import { type Priority, priorities } from "./priority.js";

/** Counts by class. */
export class ClassCounts {
  readonly #counts = priorities.map(() => 0);

  /** @param change 1 or -1 */
  add(priority: Priority, change: number): void {
    const i = priorities.indexOf(priority);
    this.#counts[i] = (this.#counts[i] ?? 0) + change;
  }

  /** Returns the count of a class. */
  of(priority: Priority): number {
    return this.#counts[priorities.indexOf(priority)] ?? 0;
  }

  /** Returns the count of a class and the classes above it. */
  from(priority: Priority): number {
    let sum = 0;
    for (let i = priorities.indexOf(priority); i >= 0; i -= 1) sum += this.#counts[i] ?? 0;
    return sum;
  }
}
