import type { GateState } from "../../core/admission/gate.js";
import type { CapacityChange } from "../../core/concurrency/signal-update.js";
import { otherKey } from "./service-pools.js";

/** An event of a service, for logs. All names are from the policy. */
export type ServiceEvent =
  | { readonly kind: "gateChanged"; readonly service: string; readonly state: GateState }
  | ({ readonly kind: "capacityChanged"; readonly service: string } & CapacityChange)
  /** Requests that were admitted in the last second had waited long. */
  | ({ readonly kind: "waitedLong"; readonly service: string } & LongWaitsEvent);

/**
 * Collects capacity changes until they are reported: readings may come ten times a second for a
 * hundred keys. Keeps one change per name, from its start to its end; for `other`, the largest.
 */
export class CapacityChanges {
  readonly #byKey = new Map<string, CapacityChange>();

  /** Adds a change that is later than all previous ones. */
  add(change: CapacityChange): void {
    const { key } = change;
    const before = this.#byKey.get(key);
    if (before === undefined) this.#byKey.set(key, change);
    else if (key !== otherKey) this.#byKey.set(key, { ...change, from: before.from });
    else if (sizeOf(change) > sizeOf(before)) this.#byKey.set(key, change);
  }

  /** Takes the collected changes, except those that ended where they began. */
  take(): readonly CapacityChange[] {
    const changes = [...this.#byKey.values()].filter((change) => sizeOf(change) > 0);
    this.#byKey.clear();
    return changes;
  }
}

function sizeOf({ from, to }: CapacityChange): number {
  return Math.abs(to - from);
}

/** Waits for a permit above this duration are reported, in milliseconds. */
export const longWaitMs = 100;

/** Long waits in a period. */
interface LongWaitsEvent {
  /** Key of the longest wait, as metrics name it. */
  readonly key: string;
  readonly count: number;
  readonly longestMs: number;
}

/** Sums up long waits of admitted requests: an overload has thousands, but logs one line. */
export class LongWaits {
  #reported: LongWaitsEvent | undefined;

  /** Adds the wait of an admitted request. A wait up to `longWaitMs` is not long. */
  add(key: string, waitMs: number): void {
    if (waitMs <= longWaitMs) return;
    const before = this.#reported ?? { key, count: 0, longestMs: waitMs };
    const longest = waitMs > before.longestMs ? { key, longestMs: waitMs } : {};
    this.#reported = { ...before, ...longest, count: before.count + 1 };
  }

  /** Takes the long waits since the last call. Undefined if there were none. */
  take(): LongWaitsEvent | undefined {
    const reported = this.#reported;
    this.#reported = undefined;
    return reported;
  }
}
