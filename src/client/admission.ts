import type { Priority } from "../core/admission/priority.js";
import type { QueueOrder } from "../core/admission/request-queue.js";
import type { Clock, Random } from "../core/base/clock.js";
import type { OutcomeKind } from "../core/calls/attempt-outcome.js";
import type { AdmissionCause } from "./admission-error.js";
import type { Classify } from "./outcome.js";

/**
 * Limit of the calls in flight. Critical calls may exceed a limit of `gradient` or `vegas` by what
 * arrives at once by chance, up to `max`, and a limit probe does not restrict them.
 */
export interface ConcurrencyOptions {
  /** Concurrency algorithm. Default `gradient` */
  readonly law?: "gradient" | "vegas" | "aimd" | "window" | "fixed";
  /** Limit before anything is measured; for `fixed`, the limit itself. Default 20 */
  readonly initial?: number;
  /** Minimum limit, from 1. Default 1 */
  readonly min?: number;
  /** Maximum limit. Default 1,000 */
  readonly max?: number;
  /** Permits; required for `window` with a queue, where the algorithm limits the queue. */
  readonly permits?: number;
}

/** Queue of the calls that wait for a permit. */
export interface QueueOptions {
  /** Maximum number of waiting calls. Default 100 */
  readonly sizeMax?: number;
  /** Maximum wait of a call, in milliseconds. Default 300 */
  readonly waitMsMax?: number;
  /** Default `priority` */
  readonly order?: QueueOrder;
  /** CoDel (RFC 8289). Default: a target of 20 ms in intervals of 100 ms; `false` for none */
  readonly codel?: { readonly targetMs: number; readonly intervalMs: number } | false;
}

/**
 * The adaptive throttle, `max(0, (requests - k x accepts) / (requests + 1))`, for each priority
 * separately, because a service refuses the low ones first.
 */
export interface ThrottleOptions {
  /** At least 1. Default 2 */
  readonly k?: number;
  /** Time constant with which both counts decay, in milliseconds. Default 30,000 */
  readonly memoryMs?: number;
}

/** The circuit breaker of an admission. */
export interface BreakerOptions {
  /** Ratio of calls that fail or are not served in time at which it opens. Default 0.5 */
  readonly failureRatio?: number;
  /** Minimum number of calls within `windowMs` for it to open. Default 20 */
  readonly callsMin?: number;
  /** Default 10,000 */
  readonly windowMs?: number;
  /** How long it stays open before it lets probes through, in milliseconds. Default 5,000 */
  readonly openMs?: number;
  /** Concurrent probes while half-open, and consecutive successes that close it. Default 3 */
  readonly probesCount?: number;
}

/** How refused and failed attempts are retried. */
export interface RetryOptions {
  /** Maximum attempts of one call, including the first, from 1. Default 3 */
  readonly attemptsMax?: number;
  /**
   * `law`: `min(2^n + U, 30 s)` after 429 and `min(2^(n+1) + U(0, 2), 60 s)` after all others, n
   * from 0; `full`: uniform between 0 and the capped exponential; `decorrelated`: uniform between
   * the base and three times the last wait. Never less than the service asks for. Default `full`
   */
  readonly jitter?: "law" | "full" | "decorrelated";
  /** The first wait of `full` and `decorrelated`, in milliseconds. Default 100 */
  readonly baseMs?: number;
  /** Maximum wait of `full` and `decorrelated`, in milliseconds. Default 10,000 */
  readonly maxMs?: number;
  /** Retries and hedges allowed per success. Default 0.1 */
  readonly budgetRatio?: number;
  /** Retries and hedges per second that are allowed regardless of successes. Default 1 */
  readonly budgetPerSecondMin?: number;
  /**
   * Maximum wait that a service may ask for, in milliseconds. If it asks for more, the call fails.
   * Default 60,000
   */
  readonly retryAfterMsMax?: number;
}

/** A second attempt that runs beside a slow first one. Only idempotent calls have one. */
export interface HedgeOptions {
  /** Quantile of earlier latencies after which it begins. Default 0.95 */
  readonly quantile?: number;
  /** Minimum wait before it begins, in milliseconds. Default 10 */
  readonly afterMsMin?: number;
}

/** Time limits of calls. */
export interface DeadlineOptions {
  /** Timeout of calls that state none, in milliseconds. Default: none */
  readonly timeoutMs?: number;
  /** Minimum time left to begin an attempt, in milliseconds. Default 5 */
  readonly remainingMsMin?: number;
  /** Time subtracted from what the service is told, in milliseconds. Default 0 */
  readonly marginMs?: number;
  /** Header that states the time left, in milliseconds, besides `grpc-timeout`. Default: none */
  readonly header?: string;
}

/** Options of an admission. A part without options is disabled. */
export interface AdmissionOptions {
  /** Name in errors and metrics: the service that is called. */
  readonly name: string;
  readonly concurrency?: ConcurrencyOptions | false;
  readonly queue?: QueueOptions;
  readonly throttle?: ThrottleOptions;
  readonly breaker?: BreakerOptions;
  readonly retry?: RetryOptions;
  readonly hedge?: HedgeOptions;
  readonly deadline?: DeadlineOptions;
  /** Header that tells the service the priority of a call. Default `x-request-priority` */
  readonly priorityHeader?: string;
  /** For tests. Default: the process's own */
  readonly clock?: Clock;
  /** For tests. Default: the process's own */
  readonly random?: Random;
}

/** Options of one call. */
export interface CallOptions<T> {
  /** Default `normal` */
  readonly priority?: Priority;
  /** Timeout of the whole call, including all attempts and waits, in milliseconds. */
  readonly timeoutMs?: number;
  /** Cancels the call. */
  readonly signal?: AbortSignal;
  /** Whether it may run twice: required for hedges, and retries after a timeout. Default false */
  readonly isIdempotent?: boolean;
  /** Default: a call that resolves is served; one that rejects failed and is not retriable */
  readonly classify?: Classify<T>;
}

/** One attempt of a call, as its work sees it. */
export interface Attempt {
  /** From 1. */
  readonly number: number;
  /** Whether it is a hedge, which runs beside an earlier attempt. */
  readonly isHedge: boolean;
  /**
   * Aborts when the result is no longer needed: the call is cancelled or out of time, also while
   * `holdUntil` waits; another attempt has won; or a retry of this one begins.
   */
  readonly signal: AbortSignal;
  /** Time left, in milliseconds. Undefined if the call has no timeout. */
  readonly remainingMs: number | undefined;
  /** Lower-case headers that tell the service the priority, time left and attempt number. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Keeps the permit after the work has resolved, until this settles, such as while a body is read.
   * The signal still aborts when the call is cancelled or out of time; the permit is then free at
   * most 30 s later. A call without a timeout keeps it for as long as this takes. An attempt that
   * is retried loses its permit when the retry is decided. May be called once.
   */
  holdUntil(ended: Promise<unknown>): void;
}

/** Admission of calls to one service, in the caller. */
export interface Admission {
  readonly name: string;
  /** Clock of the admission, which adapters use, too. Its timers do not keep the process alive. */
  readonly clock: Clock;
  /**
   * Makes a call: waits for a permit, runs the work, and retries it as its options say.
   *
   * When the time of the call is over, work that ignores its signal is abandoned: the call rejects,
   * and its permit stays in use until the work settles, for at most 30 s. If a retry is refused
   * here, the call ends with the result of the last attempt.
   *
   * @throws AdmissionError if it was refused here; a DOMException `TimeoutError` if its time was
   *   over during an attempt; the signal's reason if it was cancelled; otherwise what the last
   *   attempt threw
   */
  run<T>(work: (attempt: Attempt) => Promise<T>, options?: CallOptions<T>): Promise<T>;
  /** Returns state and counts, for metrics and people. */
  snapshot(): AdmissionSnapshot;
}

/** State and counts of an admission; counts only grow. */
export interface AdmissionSnapshot {
  /** Permits that may be in use; for `window`, places in the queue. Infinity without a limit. */
  readonly limit: number;
  readonly inFlight: number;
  readonly waiting: number;
  /** Highest ratio of calls that the throttle of a class refuses now: 0 to below 1. */
  readonly throttleRatio: number;
  readonly breaker: "closed" | "open" | "halfOpen";
  /** Retries and hedges that the budget allows now. Infinity without retries. */
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
