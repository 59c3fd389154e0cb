import { type Priority, priorities } from "../../core/admission/priority.js";
import { type RefusalCause, refusalCauses } from "../../core/admission/refusal.js";
import type { SampleOutcome } from "../../core/concurrency/concurrency-limit.js";

/** State and counts of an admission in a service. Counts only grow. */
export interface ServerSnapshot {
  /** Permits that may be in use. Infinity without a limit. */
  readonly limit: number;
  readonly inFlight: number;
  readonly waiting: number;
  /** Load of permits and places in the queue, or of a source: 1 is full. */
  readonly loadRatio: number;
  /** How much of the answer each class should leave out, from 0 to 1. */
  readonly brownoutRatio: Readonly<Record<Priority, number>>;
  readonly admitted: Readonly<Record<Priority, number>>;
  /** By class and cause; causes that never occurred are left out. */
  readonly refused: Readonly<Record<Priority, Readonly<Partial<Record<RefusalCause, number>>>>>;
  readonly outcomes: Readonly<Record<SampleOutcome, number>>;
  /** Requests that waited before they were admitted. */
  readonly waitedCount: number;
  /** Requests whose client left while they waited. */
  readonly leftCount: number;
  /** Requests on paths that are not counted. */
  readonly bypassedCount: number;
}

type State = Pick<ServerSnapshot, "limit" | "inFlight" | "waiting" | "loadRatio"> & {
  readonly brownoutRatio: (priority: Priority) => number;
};

/** Counters of an admission in a service. */
export class ServerCounts {
  readonly admitted: Record<Priority, number> = { critical: 0, high: 0, normal: 0, low: 0 };
  readonly outcomes: Record<SampleOutcome, number> = { success: 0, ignore: 0, dropped: 0 };
  waitedCount = 0;
  leftCount = 0;
  bypassedCount = 0;
  readonly #refused = new Map<string, number>();

  refused(priority: Priority, cause: RefusalCause): void {
    const name = `${priority} ${cause}`;
    this.#refused.set(name, (this.#refused.get(name) ?? 0) + 1);
  }

  snapshot({ brownoutRatio, ...state }: State): ServerSnapshot {
    const { waitedCount, leftCount, bypassedCount } = this;
    return {
      ...state,
      brownoutRatio: byPriority(brownoutRatio),
      admitted: { ...this.admitted },
      refused: byPriority((priority) => this.#refusedOf(priority)),
      outcomes: { ...this.outcomes },
      waitedCount,
      leftCount,
      bypassedCount,
    };
  }

  #refusedOf(priority: Priority): Readonly<Partial<Record<RefusalCause, number>>> {
    const counts: Partial<Record<RefusalCause, number>> = {};
    for (const cause of refusalCauses) {
      const count = this.#refused.get(`${priority} ${cause}`);
      if (count !== undefined) counts[cause] = count;
    }
    return counts;
  }
}

/** Returns a value for each class. */
export function byPriority<T>(of: (priority: Priority) => T): Readonly<Record<Priority, T>> {
  const [critical, high, normal, low] = priorities;
  return { critical: of(critical), high: of(high), normal: of(normal), low: of(low) };
}
