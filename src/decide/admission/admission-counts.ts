import { type Priority, priorities } from "../../core/admission/priority.js";
import { type RefusalCause, refusalCauses } from "../../core/admission/refusal.js";
import type { SampleOutcome } from "../../core/concurrency/concurrency-limit.js";

/** Upper bounds of how long requests waited, in milliseconds. */
const waitBoundsMs: readonly number[] = [
  1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000,
];

/** Upper bounds of the capacity that was seen, in permits. */
const capacityBounds: readonly number[] = [10, 25, 50, 100, 250, 500, 750, 1_000];

/** Numbers by the bucket that they fall into, as metrics show them. */
class Buckets {
  /** Ascending; there is one more bucket, above the last. */
  readonly bounds: readonly number[];
  readonly counts: number[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  add(value: number): void {
    let index = 0;
    while (index < this.bounds.length && value > (this.bounds[index] ?? 0)) index += 1;
    this.counts[index] = (this.counts[index] ?? 0) + 1;
    this.sum += value;
  }
}

/** Refusals of one kind, by class and cause. */
class RefusalCounts {
  readonly #counts = new Float64Array(priorities.length * refusalCauses.length);

  add(priority: Priority, cause: RefusalCause): void {
    const index = indexOf(priority, cause);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }

  of(priority: Priority, cause: RefusalCause): number {
    return this.#counts[indexOf(priority, cause)] ?? 0;
  }
}

const priorityIndex: Readonly<Record<Priority, number>> = {
  critical: 0,
  high: 1,
  normal: 2,
  low: 3,
};

const causeIndex: ReadonlyMap<RefusalCause, number> = new Map(
  refusalCauses.map((cause, i) => [cause, i]),
);

function indexOf(priority: Priority, cause: RefusalCause): number {
  return priorityIndex[priority] * refusalCauses.length + (causeIndex.get(cause) ?? 0);
}

/** What admission to one service has decided. Plain numbers: read them when scraped. */
export class AdmissionCounts {
  /** Let in, by class. */
  readonly admitted: Record<Priority, number> = { critical: 0, high: 0, normal: 0, low: 0 };
  readonly refused = new RefusalCounts();
  /** Would have been refused by a block that only counts; a request may be among several. */
  readonly dryRefused = new RefusalCounts();
  /** Passed uncounted: health checks and the like. */
  bypassedCount = 0;
  /** Let in undecided, since this process was overloaded; they are among those admitted. */
  failureModeAllowedCount = 0;
  /** Gave up while they waited. */
  leftCount = 0;
  /** How requests ended that held a permit. */
  readonly outcomes: Record<SampleOutcome, number> = { success: 0, ignore: 0, dropped: 0 };
  /** Permits that came back because their leases ended; they are no outcomes. */
  overdueCount = 0;
  /** Rate limits that could not be asked; such requests pass. */
  rateLimitFailedCount = 0;
  /** Would have been held by a rate limit that only counts. */
  dryDelayedCount = 0;
  /** Held by a rate limit now. */
  delayedNow = 0;
  /** How long rate limits held requests, of those that were held until their turn. */
  readonly delays = new Buckets(waitBoundsMs);
  /** How long those waited that were let in from the queue. */
  readonly waits = new Buckets(waitBoundsMs);
  /** Permits that this replica may have in use, looked at once a second. */
  readonly capacity = new Buckets(capacityBounds);
}
