import type { Priority } from "../core/admission/priority.js";
import type { QueueOrder } from "../core/admission/request-queue.js";
import type { Clock, Random } from "../core/base/clock.js";
import type { OutcomeKind } from "../core/calls/attempt-outcome.js";
import type { AdmissionCause } from "./admission-error.js";
import type { Classify } from "./outcome.js";

/**
 * How many calls may be in flight at once. Critical calls may go above a limit of `gradient` or
 * `vegas` by what chance brings at once, up to `max`; a measurement of the law does not hold them.
 */
export interface ConcurrencyOptions {
  /** The concurrency law. Default `gradient` */
  readonly law?: "gradient" | "vegas" | "aimd" | "window" | "fixed";
  /** The limit before anything is known; of `fixed` the limit. Default 20 */
  readonly initial?: number;
  /** From 1. Default 1 */
  readonly min?: number;
  /** Default 1,000 */
  readonly max?: number;
  /** Of `window` with a queue, which it needs: permits, while the law bounds who waits. */
  readonly permits?: number;
}

/** Calls that wait for a permit. */
export interface QueueOptions {
  /** The most that wait. Default 100 */
  readonly sizeMax?: number;
  /** The longest that one waits, in milliseconds. Default 300 */
  readonly waitMsMax?: number;
  /** Default `priority` */
  readonly order?: QueueOrder;
  /** CoDel (RFC 8289). Default: a target of 20 ms in intervals of 100 ms; `false` for none */
  readonly codel?: { readonly targetMs: number; readonly intervalMs: number } | false;
}

/**
 * The adaptive throttle: `max(0, (requests - k x accepts) / (requests + 1))`, for each priority by
 * itself: a service refuses the low ones first.
 */
export interface ThrottleOptions {
  /** At least 1. Default 2 */
  readonly k?: number;
  /** How fast both counts forget: the time constant, in milliseconds. Default 30,000 */
  readonly memoryMs?: number;
}

/** The circuit breaker of an admission. */
export interface BreakerOptions {
  /** The share of calls that fail or are not served in time from which it opens. Default 0.5 */
  readonly failureRatio?: number;
  /** Calls within `windowMs` below which it does not open. Default 20 */
  readonly callsMin?: number;
  /** Default 10,000 */
  readonly windowMs?: number;
  /** How long it stays open before it lets probes through, in milliseconds. Default 5,000 */
  readonly openMs?: number;
  /** Probes in flight at once while half-open, and successes in a row that close it. Default 3 */
  readonly probesCount?: number;
}

/** How refused and failed attempts are repeated. */
export interface RetryOptions {
  /** Attempts of one call, the first included, from 1. Default 3 */
  readonly attemptsMax?: number;
  /**
   * `law`: `min(2^n + U, 30 s)` after 429 and `min(2^(n+1) + U(0, 2), 60 s)` after all others, n
   * from 0; `full`: uniform between 0 and the capped exponential; `decorrelated`: uniform between
   * the base and three times the last wait. Never less than the service asked for. Default `full`
   */
  readonly jitter?: "law" | "full" | "decorrelated";
  /** The first wait of `full` and `decorrelated`, in milliseconds. Default 100 */
  readonly baseMs?: number;
  /** Their longest wait, in milliseconds. Default 10,000 */
  readonly maxMs?: number;
  /** Retries and hedges for each success. Default 0.1 */
  readonly budgetRatio?: number;
  /** Retries and hedges a second that are allowed whatever succeeds. Default 1 */
  readonly budgetPerSecondMin?: number;
  /**
   * The longest wait that a service may ask for, in milliseconds; asked for more, the call fails.
   * Default 60,000
   */
  readonly retryAfterMsMax?: number;
}

/** A second attempt beside a slow first one; only calls that are idempotent have one. */
export interface HedgeOptions {
  /** When it begins: after this quantile of latencies so far. Default 0.95 */
  readonly quantile?: number;
  /** The least wait before it, in milliseconds. Default 10 */
  readonly afterMsMin?: number;
}

/** Times of calls. */
export interface DeadlineOptions {
  /** The time of a call that states none, in milliseconds. Default: none */
  readonly timeoutMs?: number;
  /** An attempt is not begun with less left, in milliseconds. Default 5 */
  readonly remainingMsMin?: number;
  /** Kept back of what the service is told, in milliseconds. Default 0 */
  readonly marginMs?: number;
  /** A header that states the time left, in milliseconds, beside `grpc-timeout`. Default: none */
  readonly header?: string;
}

/** What an admission does; each part that is absent is not there. */
export interface AdmissionOptions {
  /** Names it in errors and metrics: the service that is called. */
  readonly name: string;
  readonly concurrency?: ConcurrencyOptions | false;
  readonly queue?: QueueOptions;
  readonly throttle?: ThrottleOptions;
  readonly breaker?: BreakerOptions;
  readonly retry?: RetryOptions;
  readonly hedge?: HedgeOptions;
  readonly deadline?: DeadlineOptions;
  /** The header that tells the service a call's priority. Default `x-request-priority` */
  readonly priorityHeader?: string;
  /** For tests. Default: the process's own */
  readonly clock?: Clock;
  /** For tests. Default: the process's own */
  readonly random?: Random;
}

/** What one call asks for. */
export interface CallOptions<T> {
  /** Default `normal` */
  readonly priority?: Priority;
  /** The time of the whole call, in milliseconds, all attempts and waits included. */
  readonly timeoutMs?: number;
  /** Gives the call up. */
  readonly signal?: AbortSignal;
  /** Whether it may be done twice: hedges need it, and retries after a timeout. Default false */
  readonly isIdempotent?: boolean;
  /** Default: what resolves is served; what rejects has failed, and is not retriable */
  readonly classify?: Classify<T>;
}

/** One attempt of a call, as its work sees it. */
export interface Attempt {
  /** From 1. */
  readonly number: number;
  /** Whether it runs beside an earlier one. */
  readonly isHedge: boolean;
  /**
   * Aborts when nobody wants what comes of it any more: the call is given up or out of time, also
   * while `holdUntil` waits; another attempt has won; or its repetition begins.
   */
  readonly signal: AbortSignal;
  /** The time that is left, in milliseconds; undefined: no end. */
  readonly remainingMs: number | undefined;
  /** Headers that tell the service the priority, the time left and the attempt, in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Keeps the permit after the work has resolved, until this settles: a body that is still read.
   * The signal still aborts when the call is given up or out of time, and the permit is free 30 s
   * later at most. A call without an end keeps it for as long as this takes; an attempt that is
   * repeated has no permit from when that is decided. It may be called once.
   */
  holdUntil(ended: Promise<unknown>): void;
}

/** Admission of calls to one service, in the caller. */
export interface Admission {
  readonly name: string;
  /** Its time, by which adapters measure as well. Timers of it keep no process alive. */
  readonly clock: Clock;
  /**
   * Makes a call: waits for a permit, runs the work, and repeats it as its options say.
   *
   * Once its time is over, work that ignores its signal is left behind: the call rejects, and its
   * permit stays in use until the work settles, but for 30 s at most. A retry that is refused here
   * leaves the call with the result of the last attempt.
   *
   * @throws AdmissionError when it was refused here; a DOMException `TimeoutError` when its time
   *   was over during an attempt; the signal's reason when it was given up; else what the last
   *   attempt threw
   */
  run<T>(work: (attempt: Attempt) => Promise<T>, options?: CallOptions<T>): Promise<T>;
  /** Its state and counts, for metrics and people. */
  snapshot(): AdmissionSnapshot;
}

/** State and counts of an admission; counts only grow. */
export interface AdmissionSnapshot {
  /** Permits that may be in use; of `window` the places of the queue. Infinity without a limit. */
  readonly limit: number;
  readonly inFlight: number;
  readonly waiting: number;
  /** The share of calls that the throttle refuses now, of the class with most: 0 to below 1. */
  readonly throttleRatio: number;
  readonly breaker: "closed" | "open" | "halfOpen";
  /** Retries and hedges that the budget has left now. Infinity without retries. */
  readonly budgetLeft: number;
  readonly callsCount: number;
  readonly attemptsCount: number;
  readonly retriesCount: number;
  readonly hedgesCount: number;
  /** Retries and hedges that the budget did not allow. */
  readonly budgetRefusedCount: number;
  readonly outcomes: Readonly<Record<OutcomeKind, number>>;
  readonly refused: Readonly<Record<AdmissionCause, number>>;
}
