import type { Priority } from "../core/admission/priority.js";
import type { Clock } from "../core/base/clock.js";
import type { OutcomeKind } from "../core/calls/attempt-outcome.js";
import type { CallOptions, ConcurrencyOptions, QueueOptions } from "./admission.js";
import { acquirePermit, CallPermits, type HeldPermit } from "./permits.js";
import { callClock } from "./system.js";

/** Options of a limiter. */
export interface LimiterOptions extends ConcurrencyOptions {
  /** Names it in errors. Default `limiter` */
  readonly name?: string;
  /** Who waits. Default: nobody does */
  readonly queue?: QueueOptions;
  /** For tests. Default: the process's own */
  readonly clock?: Clock;
}

/** What somebody asks a limiter for; `timeoutMs` bounds the wait, beside the queue's own bound. */
export type AcquireOptions = Pick<CallOptions<unknown>, "priority" | "timeoutMs" | "signal">;

/** A permit of a limiter. */
export interface Permit {
  /**
   * Gives it back, and teaches the law what the work came to; once more does nothing.
   *
   * @param kind default `served`
   */
  release(kind?: OutcomeKind): void;
}

/** State of a limiter. */
export interface LimiterSnapshot {
  /** Permits that may be in use; of `window` with a queue the places of it. */
  readonly limit: number;
  readonly inFlight: number;
  readonly waiting: number;
}

/** A limit of what is in flight at once, that is learned from how the work goes. */
export interface Limiter {
  /**
   * A permit, if one is free now and nobody waits for it.
   *
   * @param priority default `normal`
   */
  tryAcquire(priority?: Priority): Permit | undefined;
  /**
   * A permit, when one is free.
   *
   * @throws AdmissionError when there is none in time; the signal's reason when that aborts
   */
  acquire(options?: AcquireOptions): Promise<Permit>;
  snapshot(): LimiterSnapshot;
}

/**
 * A concurrency limit with a queue, by itself.
 *
 * @throws RangeError that names an option which is out of bounds
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
