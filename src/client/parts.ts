import { Throttle } from "../core/admission/throttle.js";
import type { Clock, Random } from "../core/base/clock.js";
import type { OutcomeKind } from "../core/calls/attempt-outcome.js";
import type { CallBreakerState } from "../core/calls/call-breaker.js";
import { systemRandom } from "../host/clock.js";
import type { BreakerOptions, RetryOptions, ThrottleOptions } from "./admission.js";
import { createBudget, createCallBreaker, throttleSettings } from "./settings.js";
import { callClock } from "./system.js";

/** Options for tests that all parts accept. */
interface TestOptions {
  /** Default: the process's own */
  readonly clock?: Clock;
}

/** Refuses calls on this side that the service would refuse anyway. */
export interface ClientThrottle {
  /** Reports whether to refuse this call. A refused call is counted and needs no `learn`. */
  rejects(): boolean;
  /** Counts the outcome of a call that was sent. A cancelled call does not count. */
  learn(kind: OutcomeKind): void;
  /** Ratio of calls that it refuses now, from 0 to below 1. */
  readonly rejectRatio: number;
}

/**
 * Creates an adaptive throttle alone: `max(0, (requests - k x accepts) / (requests + 1))`.
 *
 * @throws RangeError that names the option that is out of bounds
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
  /** Begins a call. @returns how to end it, once; undefined if the call must not be made */
  admit(): ((kind: OutcomeKind) => void) | undefined;
  readonly state: CallBreakerState;
  /** Time until it lets probes through, in milliseconds. 0 if it is not open. */
  readonly openMs: number;
}

/**
 * Creates a circuit breaker without an admission.
 *
 * @throws RangeError that names the option that is out of bounds
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

/** Limits the number of retries and hedges. */
export interface ClientRetryBudget {
  /** Counts a call that was served. */
  served(): void;
  /** Takes one retry or hedge. @returns whether one was left; if not, do not begin it */
  take(): boolean;
  /** Returns the retries and hedges that may begin now, with fractions, from 0. */
  left(): number;
}

/** Options of a retry budget. */
export type RetryBudgetOptions = Pick<RetryOptions, "budgetRatio" | "budgetPerSecondMin">;

/**
 * Creates a retry budget without an admission, for all `retry` calls to one service.
 *
 * @throws RangeError that names the option that is out of bounds
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
