import type { GateState } from "../../core/admission/gate.js";
import type { CapacityChange } from "../../core/concurrency/signal-update.js";
import { otherKey } from "./service-pools.js";

/** What happens to a service, for logs; all names are the policy's. */
export type ServiceEvent =
  | { readonly kind: "gateChanged"; readonly service: string; readonly state: GateState }
  | ({ readonly kind: "capacityChanged"; readonly service: string } & CapacityChange)
  /** Requests that were let in in the last second had waited for long. */
  | ({ readonly kind: "waitedLong"; readonly service: string } & LongWaitsEvent);

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

/** A wait for a permit from which it is told, in milliseconds. */
export const longWaitMs = 100;

/** Long waits of a span of time. */
interface LongWaitsEvent {
  /** Whose wait was the longest, as metrics name it. */
  readonly key: string;
  readonly count: number;
  readonly longestMs: number;
}

/** Adds up waits of those who were let in after long: an overload has thousands, and one line. */
export class LongWaits {
  #reported: LongWaitsEvent | undefined;

  /** One was let in; a wait up to `longWaitMs` is not long. */
  add(key: string, waitMs: number): void {
    if (waitMs <= longWaitMs) return;
    const before = this.#reported ?? { key, count: 0, longestMs: waitMs };
    const longest = waitMs > before.longestMs ? { key, longestMs: waitMs } : {};
    this.#reported = { ...before, ...longest, count: before.count + 1 };
  }

  /** What there was since the last call; undefined: nothing. */
  take(): LongWaitsEvent | undefined {
    const reported = this.#reported;
    this.#reported = undefined;
    return reported;
  }
}
