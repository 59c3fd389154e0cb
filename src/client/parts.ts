import { Throttle } from "../core/admission/throttle.js";
import type { Clock, Random } from "../core/base/clock.js";
import type { OutcomeKind } from "../core/calls/attempt-outcome.js";
import type { CallBreakerState } from "../core/calls/call-breaker.js";
import { systemRandom } from "../host/clock.js";
import type { BreakerOptions, RetryOptions, ThrottleOptions } from "./admission.js";
import { createBudget, createCallBreaker, throttleSettings } from "./settings.js";
import { callClock } from "./system.js";

/** What a part takes for tests. */
interface TestOptions {
  /** Default: the process's own */
  readonly clock?: Clock;
}

/** Refuses here what the service would refuse anyway. */
export interface ClientThrottle {
  /** Whether to refuse this call; one that is refused is counted, and needs no `learn`. */
  rejects(): boolean;
  /** Counts what a call that was sent came to; what was cancelled does not count. */
  learn(kind: OutcomeKind): void;
  /** The share of calls that it refuses now, 0 to below 1. */
  readonly rejectRatio: number;
}

/**
 * An adaptive throttle by itself: `max(0, (requests - k x accepts) / (requests + 1))`.
 *
 * @throws RangeError that names an option which is out of bounds
 */
export function createThrottle(
  options: ThrottleOptions & TestOptions & { readonly random?: Random } = {},
): ClientThrottle {
  const { clock = callClock, random = systemRandom } = options;
  const throttle = new Throttle(throttleSettings(options));
  return {
    rejects: () => {
      const nowMs = clock.monotonicMs();
      const rejects = throttle.rejects(nowMs, random.next());
      if (rejects) throttle.refused(nowMs);
      return rejects;
    },
    learn: (kind) => {
      if (kind === "overloaded") throttle.refused(clock.monotonicMs());
      else if (kind !== "cancelled") throttle.accepted(clock.monotonicMs());
    },
    get rejectRatio() {
      return throttle.rejectRatio(clock.monotonicMs());
    },
  };
}

/** Stops calls to a service that fails. */
export interface CircuitBreaker {
  /** Begins a call. @returns how to end it, once; undefined: do not make the call */
  admit(): ((kind: OutcomeKind) => void) | undefined;
  readonly state: CallBreakerState;
  /** How long until it lets probes through, in milliseconds; 0 where it is not open. */
  readonly openMs: number;
}

/**
 * A circuit breaker by itself.
 *
 * @throws RangeError that names an option which is out of bounds
 */
export function createBreaker(options: BreakerOptions & TestOptions = {}): CircuitBreaker {
  const { clock = callClock } = options;
  const breaker = createCallBreaker(options);
  return {
    admit: () => {
      const ticket = breaker.admit(clock.monotonicMs());
      if (ticket === undefined) return undefined;
      let isEnded = false;
      return (kind) => {
        if (isEnded) return;
        isEnded = true;
        breaker.end(ticket, kind, clock.monotonicMs());
      };
    },
    get state() {
      return breaker.state(clock.monotonicMs());
    },
    get openMs() {
      return breaker.openMs(clock.monotonicMs());
    },
  };
}

/** How many retries and hedges there may be. */
export interface ClientRetryBudget {
  /** A call was served. */
  served(): void;
  /** Takes one retry or hedge. @returns whether there was one left; if not, do not begin it */
  take(): boolean;
  /** Retries and hedges that may begin now, with fractions, from 0. */
  left(): number;
}

/** Options of a retry budget. */
export type RetryBudgetOptions = Pick<RetryOptions, "budgetRatio" | "budgetPerSecondMin">;

/**
 * A retry budget by itself, for all `retry` calls to one service.
 *
 * @throws RangeError that names an option which is out of bounds
 */
export function createRetryBudget(
  options: RetryBudgetOptions & TestOptions = {},
): ClientRetryBudget {
  const { clock = callClock } = options;
  const budget = createBudget(options);
  return {
    served: () => budget.served(clock.monotonicMs()),
    take: () => budget.take(clock.monotonicMs()),
    left: () => budget.left(clock.monotonicMs()),
  };
}
