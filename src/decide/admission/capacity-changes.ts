import type { CapacityChange } from "../../core/concurrency/signal-update.js";
import { otherKey } from "./service-pools.js";

/**
 * Changes of capacity until they are told: readings may come ten times a second, of a hundred keys.
 * Of each name one is left, from where it began to where it ended; of `other` the largest.
 */
export class CapacityChanges {
  readonly #byKey = new Map<string, CapacityChange>();

  /** One more, later than those before. */
  add(change: CapacityChange): void {
    const { key } = change;
    const before = this.#byKey.get(key);
    if (before === undefined) this.#byKey.set(key, change);
    else if (key !== otherKey) this.#byKey.set(key, { ...change, from: before.from });
    else if (sizeOf(change) > sizeOf(before)) this.#byKey.set(key, change);
  }

  /** What is left of them; none that ended where it began. */
  take(): readonly CapacityChange[] {
    const changes = [...this.#byKey.values()].filter((change) => sizeOf(change) > 0);
    this.#byKey.clear();
    return changes;
  }
}

function sizeOf({ from, to }: CapacityChange): number {
  return Math.abs(to - from);
}
