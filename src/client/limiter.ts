import type { Priority } from "../core/admission/priority.js";
import type { Clock } from "../core/base/clock.js";
import type { OutcomeKind } from "../core/calls/attempt-outcome.js";
import type { CallOptions, ConcurrencyOptions, QueueOptions } from "./admission.js";
import { acquirePermit, CallPermits, type HeldPermit } from "./permits.js";
import { callClock } from "./system.js";

/** Options of a limiter. */
export interface LimiterOptions extends ConcurrencyOptions {
  /** Name in errors. Default `limiter` */
  readonly name?: string;
  /** Queue of waiting callers. Default: none */
  readonly queue?: QueueOptions;
  /** For tests. Default: the process's own */
  readonly clock?: Clock;
}

/** Options of one acquisition. `timeoutMs` bounds the wait, in addition to the queue's bound. */
export type AcquireOptions = Pick<CallOptions<unknown>, "priority" | "timeoutMs" | "signal">;

/** A permit of a limiter. */
export interface Permit {
  /**
   * Releases it, and teaches the algorithm the outcome of the work. Further calls do nothing.
   *
   * @param kind default `served`
   */
  release(kind?: OutcomeKind): void;
}

/** State of a limiter. */
export interface LimiterSnapshot {
  /** Permits that may be in use; for `window` with a queue, the places in it. */
  readonly limit: number;
  readonly inFlight: number;
  readonly waiting: number;
}

/** A limit of work in flight, which is learned from the outcomes of the work. */
export interface Limiter {
  /**
   * Returns a permit if one is free now and no caller waits for it.
   *
   * @param priority default `normal`
   */
  tryAcquire(priority?: Priority): Permit | undefined;
  /**
   * Returns a permit when one is free.
   *
   * @throws AdmissionError if there is none in time; the signal's reason if the signal aborts
   */
  acquire(options?: AcquireOptions): Promise<Permit>;
  snapshot(): LimiterSnapshot;
}

/**
 * Creates a concurrency limit with a queue, without the other parts of an admission.
 *
 * @throws RangeError that names the option that is out of bounds
 */
export function createLimiter(options: LimiterOptions = {}): Limiter {
  const { name = "limiter", clock = callClock, queue } = options;
  const permits = new CallPermits({ concurrency: options, ...(queue && { queue }) }, clock);
  const releasable = (held: HeldPermit): Permit => ({
    release: (kind = "served") => {
      const nowMs = clock.monotonicMs();
      held.teach(kind, nowMs);
      held.giveBack(nowMs);
    },
  });
  return {
    tryAcquire: (priority = "normal") => {
      const held = permits.tryTake(priority, clock.monotonicMs());
      return held && releasable(held);
    },
    acquire: async (request = {}) =>
      releasable(await acquirePermit(permits, { name, clock, request })),
    snapshot: () => ({
      limit: permits.limit,
      inFlight: permits.inUseCount,
      waiting: permits.waitingCount,
    }),
  };
}
