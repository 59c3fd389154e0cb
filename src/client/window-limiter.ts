import type { Clock } from "../core/base/clock.js";
import type { OutcomeKind } from "../core/calls/attempt-outcome.js";
import { AdmissionError } from "./admission-error.js";
import type { AcquireOptions } from "./limiter.js";
import { checkNumber, count, countMax, timeMsMax } from "./options.js";
import { acquirePermit, CallPermits } from "./permits.js";
import { callClock } from "./system.js";

/** Options of a window limiter. */
export interface WindowLimiterOptions {
  /** Name in errors. Default `window` */
  readonly name?: string;
  /** Maximum work that runs at the same time. Default 1 */
  readonly workersCount?: number;
  /** Places in the queue before anything is measured. Default 50 */
  readonly windowInitial?: number;
  /** Minimum number of places, from 1. Default 5 */
  readonly windowMin?: number;
  /** Maximum number of places. Default 1,000 */
  readonly windowMax?: number;
  /** For tests. Default: the process's own */
  readonly clock?: Clock;
}

/** Reports the outcome of work. Only the first report counts. */
export interface RateLimitControl {
  /** The result reached its caller. Ten in a row add a place to the window. */
  success(): void;
  /** The work took too long: the window shrinks below the place that the work had. */
  backoff(): void;
  /** The caller left before the result arrived: the window shrinks in the same way. */
  timeout(): void;
}

/** The result of work, and the control to report its outcome. */
export interface RateLimited<T> {
  readonly value: T;
  readonly control: RateLimitControl;
}

/** State and counts of a window limiter. Counts only grow. */
export interface WindowSnapshot {
  /** Places in the queue. */
  readonly windowSize: number;
  readonly waiting: number;
  readonly inFlight: number;
  /** Refused work: the queue was full, or its place at the head was beyond the window. */
  readonly queueFulls: number;
  /** Reports of each kind. */
  readonly completed: number;
  readonly backedOff: number;
  readonly timedOut: number;
}

/** A queue with as many places as are served in time; see `createWindowLimiter`. */
export interface WindowLimiter {
  /**
   * Runs work when its turn comes.
   *
   * Work that throws reports nothing. To report it, catch the error in the work.
   *
   * @throws AdmissionError `queueFull` if it is refused, `deadline` after `timeoutMs` in the queue;
   *   the signal's reason if it aborts there; what the work throws
   */
  runRateLimited<T>(
    work: () => T | PromiseLike<T>,
    options?: AcquireOptions,
  ): Promise<RateLimited<T>>;
  snapshot(): WindowSnapshot;
}

/**
 * Creates a rate limiter that learns how many callers may wait: as many as are served before they
 * give up. Work beyond the window is refused at once. If the window has shrunk since, work whose
 * place is beyond it is dropped at the head of the queue, without being run.
 *
 * @throws RangeError that names the option that is out of bounds
 *
 * Source: OpenZiti, "Fun with Adaptive Rate Limiting"; the algorithm is `WindowLimit`.
 */
export function createWindowLimiter(options: WindowLimiterOptions = {}): WindowLimiter {
  const { name = "window", clock = callClock } = options;
  const permits = windowPermits(options, clock);
  const counts = { queueFulls: 0, completed: 0, backedOff: 0, timedOut: 0 };
  return {
    runRateLimited: async (work, request = {}) => {
      const permit = await acquirePermit(permits, { name, clock, request }).catch((error) => {
        const isFull = error instanceof AdmissionError && error.reason === "queueFull";
        if (isFull) counts.queueFulls += 1;
        throw error;
      });
      let isReported = false;
      const report = (kind: OutcomeKind, count: "completed" | "backedOff" | "timedOut"): void => {
        if (isReported) return;
        isReported = true;
        counts[count] += 1;
        permit.teach(kind, clock.monotonicMs());
      };
      const control: RateLimitControl = {
        success: () => report("served", "completed"),
        backoff: () => report("overloaded", "backedOff"),
        timeout: () => report("overloaded", "timedOut"),
      };
      try {
        return { value: await work(), control };
      } finally {
        permit.giveBack(clock.monotonicMs());
      }
    },
    snapshot: () => ({
      windowSize: permits.limit,
      waiting: permits.waitingCount,
      inFlight: permits.inUseCount,
      ...counts,
    }),
  };
}

function windowPermits(options: WindowLimiterOptions, clock: Clock): CallPermits {
  const { workersCount = 1, windowInitial = 50, windowMin = 5, windowMax = 1_000 } = options;
  for (const [name, value] of Object.entries({
    workersCount,
    windowInitial,
    windowMin,
    windowMax,
  })) {
    checkNumber(name, value, count(1));
  }
  const window = { initial: windowInitial, min: windowMin, max: windowMax, permits: workersCount };
  // Only the window bounds the queue.
  const queue = { sizeMax: countMax, waitMsMax: timeMsMax, order: "fifo", codel: false } as const;
  return new CallPermits({ concurrency: { law: "window", ...window }, queue }, clock);
}
