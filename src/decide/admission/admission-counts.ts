import { type Priority, priorities } from "../../core/admission/priority.js";
import { type RefusalCause, refusalCauses } from "../../core/admission/refusal.js";
import type { SampleOutcome } from "../../core/concurrency/concurrency-limit.js";

/** Upper bounds of the buckets for waits, in milliseconds. */
const waitBoundsMs: readonly number[] = [
  1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000,
];

/** Upper bounds of the buckets for capacity, in permits. */
const capacityBounds: readonly number[] = [10, 25, 50, 100, 250, 500, 750, 1_000];

/** Histogram: the number of values in each bucket, as metrics show them. */
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

/** Counters of admission to one service. Plain numbers, read when metrics are scraped. */
export class AdmissionCounts {
  /** Admitted requests, by class. */
  readonly admitted: Record<Priority, number> = { critical: 0, high: 0, normal: 0, low: 0 };
  readonly refused = new RefusalCounts();
  /** Requests that a block in dry run would have refused. One request may count several times. */
  readonly dryRefused = new RefusalCounts();
  /** Requests that bypassed admission: health checks and the like. */
  bypassedCount = 0;
  /** Admitted without a decision because this process was overloaded. Included in `admitted`. */
  failureModeAllowedCount = 0;
  /** Requests whose callers gave up while they waited. */
  leftCount = 0;
  /** Outcomes of requests that held a permit. */
  readonly outcomes: Record<SampleOutcome, number> = { success: 0, ignore: 0, dropped: 0 };
  /** Permits taken back because their leases ended. Not included in `outcomes`. */
  overdueCount = 0;
  /** Requests whose rate limits could not be checked. They pass. */
  rateLimitFailedCount = 0;
  /** Requests that a rate limit in dry run would have delayed. */
  dryDelayedCount = 0;
  /** Requests that rate limits delay now. */
  delayedNow = 0;
  /** Delays by rate limits, of requests that were delayed to the end. */
  readonly delays = new Buckets(waitBoundsMs);
  /** Waits of requests that were admitted from the queue. */
  readonly waits = new Buckets(waitBoundsMs);
  /** Permits that this replica may have in use, sampled once per second. */
  readonly capacity = new Buckets(capacityBounds);
}
