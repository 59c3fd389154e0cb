import { type Priority, priorities } from "../core/admission/priority.js";
import type { Throttle } from "../core/admission/throttle.js";
import type { Clock, Random } from "../core/base/clock.js";
import type { AttemptOutcome, OutcomeKind } from "../core/calls/attempt-outcome.js";
import type { BreakerTicket, CallBreaker } from "../core/calls/call-breaker.js";
import {
  type CallDeadlineSettings,
  callEndMs,
  deadlineHeaders,
  mayBegin,
} from "../core/calls/call-deadline.js";
import type { HedgeDelay } from "../core/calls/hedge-delay.js";
import type { RetryBudget } from "../core/calls/retry-budget.js";
import { type RetryDelaySettings, retryDelayMs } from "../core/calls/retry-delay.js";
import type { Attempt, CallOptions } from "./admission.js";
import { type AdmissionCause, AdmissionError } from "./admission-error.js";
import { type AttemptHost, CallAttempt, timeoutError } from "./attempt.js";
import { checkNumber, checkWord, timeMs } from "./options.js";
import type { Classify, Settled } from "./outcome.js";
import type {
  CallPermits,
  HeldPermit,
  PermitPlace,
  PermitRefusal,
  PermitWaiter,
} from "./permits.js";
import type { Timed, Timers } from "./timers.js";

/** Retry settings of an admission. */
export interface RetrySettings extends RetryDelaySettings {
  readonly attemptsMax: number;
  readonly retryAfterMsMax: number;
}

/** Counts of an admission. */
export interface CallCounts {
  calls: number;
  attempts: number;
  retries: number;
  hedges: number;
  budgetRefused: number;
  readonly outcomes: Record<OutcomeKind, number>;
  readonly refused: Record<AdmissionCause, number>;
}

/** Parts that the calls of one admission share. A part that is undefined is disabled. */
export interface AdmissionCallParts {
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly timers: Timers;
  readonly idleTimers: Timers;
  readonly permits: CallPermits;
  readonly throttles: Readonly<Record<Priority, Throttle>> | undefined;
  readonly breaker: CallBreaker | undefined;
  readonly retry: RetrySettings | undefined;
  readonly budget: Pick<RetryBudget, "served" | "take" | "left"> | undefined;
  readonly hedge: HedgeDelay | undefined;
  readonly deadline: CallDeadlineSettings;
  readonly timeoutMs: number | undefined;
  readonly priorityHeader: string;
  readonly counts: CallCounts;
}

/** One call, and the callbacks of its promise. */
interface CallRequest<T> {
  readonly work: (attempt: Attempt) => Promise<T>;
  readonly options: CallOptions<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** Header that tells the service the number of the attempt, from 1. */
const attemptHeader = "x-headgate-attempt";

/**
 * One call. It is refused, or waits for a permit, and makes attempts until one counts. It settles
 * once; later events only release permits.
 */
export class Call<T> implements AttemptHost, PermitWaiter {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly idleTimers: Timers;
  endMs = Number.POSITIVE_INFINITY;
  readonly #parts: AdmissionCallParts;
  readonly #request: CallRequest<T>;
  readonly #priority: Priority;
  readonly #classify: Classify<T>;
  #isSettled = false;
  #attemptsCount = 0;
  #retriesCount = 0;
  /** Place in the queue, and the breaker's ticket for when the call leaves it. */
  #place: PermitPlace | undefined;
  #ticket: BreakerTicket = 0;
  #first: CallAttempt | undefined;
  #hedge: CallAttempt | undefined;
  /** Pending wait for a retry or a hedge. */
  #wait: Wait | undefined;
  #lastDelayMs: number | undefined;
  #last: Settled<T> | undefined;
  /** Attempt before the retry that the call waits for. */
  #repeated: CallAttempt | undefined;
  /** Attempt that counts, while its result is still read. */
  #held: CallAttempt | undefined;
  #onAbort: (() => void) | undefined;

  constructor(parts: AdmissionCallParts, request: CallRequest<T>) {
    this.#parts = parts;
    this.#request = request;
    this.clock = parts.clock;
    this.timers = parts.timers;
    this.idleTimers = parts.idleTimers;
    this.#priority = request.options.priority ?? "normal";
    this.#classify = request.options.classify ?? servedOrFailed;
  }

  /** Makes the first attempt, or refuses it. */
  begin(): void {
    const { timeoutMs, signal } = this.#request.options;
    if (timeoutMs !== undefined) checkNumber("timeoutMs", timeoutMs, timeMs(0));
    checkWord("priority", this.#priority, priorities);
    this.#parts.counts.calls += 1;
    if (signal?.aborted === true) {
      this.#reject(signal.reason);
      return;
    }
    const nowMs = this.clock.monotonicMs();
    if (timeoutMs !== undefined || this.#parts.timeoutMs !== undefined) {
      this.endMs = callEndMs(nowMs, [timeoutMs, this.#parts.timeoutMs]);
    }
    if (signal !== undefined) {
      this.#onAbort = () => this.#giveUp(signal.reason);
      signal.addEventListener("abort", this.#onAbort, { once: true });
    }
    this.#tryAttempt(nowMs);
  }

  headersOf(number: number, nowMs: number): Readonly<Record<string, string>> {
    const { deadline, priorityHeader } = this.#parts;
    return {
      [priorityHeader]: this.#priority,
      [attemptHeader]: String(number),
      ...deadlineHeaders(deadline, this.endMs - nowMs),
    };
  }

  admitted(permit: HeldPermit): void {
    const nowMs = permit.startMs;
    this.#place = undefined;
    if (this.#parts.breaker?.state(nowMs) !== "open") {
      this.#start({ permit, ticket: this.#ticket, isHedge: false });
      return;
    }
    // The breaker has opened since. The ticket is of a period that no longer counts.
    this.#refuse("breakerOpen", nowMs);
    permit.teach("cancelled", nowMs);
    permit.giveBack(nowMs);
  }

  refused(cause: PermitRefusal): void {
    const nowMs = this.clock.monotonicMs();
    this.#place = undefined;
    this.#parts.breaker?.end(this.#ticket, "cancelled", nowMs);
    this.#refuse(cause, nowMs);
  }

  timedOut(nowMs: number): void {
    const error = timeoutError();
    this.#leaveAttempts("overloaded", error, nowMs);
    this.#reject(error);
  }

  over(attempt: CallAttempt): void {
    if (attempt !== this.#held) return;
    this.#held = undefined;
    this.#stopListening();
  }

  /** Passes through all parts in order: deadline, breaker, throttle, permit or queue. */
  #tryAttempt(nowMs: number): void {
    const ticket = this.#pass(nowMs);
    if (typeof ticket === "string") {
      this.#refuse(ticket, nowMs);
      return;
    }
    const { permits, deadline } = this.#parts;
    const permit = permits.tryTake(this.#priority, nowMs);
    if (permit !== undefined) {
      this.#start({ permit, ticket, isHedge: false });
      return;
    }
    this.#ticket = ticket;
    const remainingMs =
      this.endMs === Number.POSITIVE_INFINITY
        ? undefined
        : this.endMs - nowMs - deadline.remainingMsMin;
    const place = permits.wait(this, { priority: this.#priority, remainingMs }, nowMs);
    if (typeof place === "string") this.refused(place);
    else this.#place = place;
  }

  /** Checks what precedes the permit. @returns the breaker's ticket, or the cause of a refusal */
  #pass(nowMs: number): BreakerTicket | AdmissionCause {
    const { breaker, deadline, random, throttles } = this.#parts;
    if (!mayBegin(deadline, this.endMs - nowMs)) return "deadline";
    const ticket = breaker === undefined ? 0 : breaker.admit(nowMs);
    if (ticket === undefined) return "breakerOpen";
    const throttle = throttles?.[this.#priority];
    if (throttle?.rejects(nowMs, random.next()) === true) {
      throttle.refused(nowMs);
      breaker?.end(ticket, "cancelled", nowMs);
      return "throttle";
    }
    return ticket;
  }

  #start({ permit, ticket, isHedge }: Pick<CallAttempt, "permit" | "ticket" | "isHedge">): void {
    this.#repeated?.abort(superseded());
    this.#repeated = undefined;
    this.#attemptsCount += 1;
    this.#parts.counts.attempts += 1;
    const number = this.#attemptsCount;
    const attempt = new CallAttempt({ host: this, permit, ticket, number, isHedge });
    if (isHedge) this.#hedge = attempt;
    else this.#first = attempt;
    let working: Promise<T>;
    try {
      working = Promise.resolve(this.#request.work(attempt));
    } catch (error) {
      working = Promise.reject(error);
    }
    working.then(
      (value) => this.#ended(attempt, { isError: false, value }),
      (error: unknown) => this.#ended(attempt, { isError: true, error }),
    );
    if (!isHedge) this.#planHedge(permit.startMs);
  }

  #ended(attempt: CallAttempt, settled: Settled<T>): void {
    if (!attempt.isRunning) {
      attempt.settledLate();
      return;
    }
    const nowMs = this.clock.monotonicMs();
    const [outcome, result] = this.#classified(settled);
    this.#learn(attempt, outcome.kind, nowMs);
    if (attempt === this.#hedge) this.#hedge = undefined;
    else this.#first = undefined;
    const isLast = this.#first === undefined && this.#hedge === undefined;
    // The call can be cancelled as long as its result is read.
    if (attempt.holds) this.#held = attempt;
    if (outcome.kind === "served" || outcome.kind === "cancelled") this.#settle(result, nowMs);
    else if (isLast) this.#retryOrSettle(outcome, result, nowMs);
    // Last, because it admits other calls, whose work may do anything.
    if (this.#isSettled) attempt.finish(outcome.kind, nowMs);
    else this.#goOnWithout(attempt, outcome.kind, nowMs);
  }

  /** Goes on without an attempt. Its result is kept before a retry, in case that is refused. */
  #goOnWithout(attempt: CallAttempt, kind: OutcomeKind, nowMs: number): void {
    this.#held = undefined;
    if (this.#wait === undefined) attempt.abort(superseded());
    else this.#repeated = attempt;
    attempt.release(kind, nowMs);
  }

  #classified(settled: Settled<T>): readonly [AttemptOutcome, Settled<T>] {
    try {
      return [this.#classify(settled), settled];
    } catch (error) {
      return [unknownOutcome, { isError: true, error }];
    }
  }

  /** Teaches all parts except the algorithm, which the permit teaches. */
  #learn(attempt: CallAttempt, kind: OutcomeKind, nowMs: number): void {
    const { breaker, budget, counts, hedge, throttles } = this.#parts;
    counts.outcomes[kind] += 1;
    breaker?.end(attempt.ticket, kind, nowMs);
    const throttle = throttles?.[this.#priority];
    if (kind === "served") {
      budget?.served(nowMs);
      hedge?.record(nowMs - attempt.permit.startMs, nowMs);
    }
    if (kind === "overloaded") throttle?.refused(nowMs);
    else if (kind !== "cancelled") throttle?.accepted(nowMs);
  }

  #retryOrSettle(outcome: AttemptOutcome, settled: Settled<T>, nowMs: number): void {
    this.#stopWaiting(nowMs);
    const { budget, counts } = this.#parts;
    const delayMs = this.#retryDelayMs(outcome, nowMs);
    if (delayMs === undefined) {
      this.#settle(settled, nowMs);
      return;
    }
    if (budget?.take(nowMs) === false) {
      counts.budgetRefused += 1;
      this.#settle(settled, nowMs);
      return;
    }
    counts.retries += 1;
    this.#retriesCount += 1;
    this.#lastDelayMs = delayMs;
    this.#last = settled;
    this.#waitFor(delayMs, nowMs, (laterMs) => this.#tryAttempt(laterMs));
  }

  /** Returns the wait before the next attempt. Undefined if there is none. */
  #retryDelayMs(outcome: AttemptOutcome, nowMs: number): number | undefined {
    const { deadline, random, retry } = this.#parts;
    const isRetriable =
      outcome.retriable === "always" ||
      (outcome.retriable === "ifIdempotent" && this.#request.options.isIdempotent === true);
    if (retry === undefined || !isRetriable) return undefined;
    if (this.#attemptsCount >= retry.attemptsMax) return undefined;
    const { waitLaw, retryAfterMs = 0 } = outcome;
    // Also true for NaN.
    if (!(retryAfterMs <= retry.retryAfterMsMax)) return undefined;
    const retryIndex = this.#retriesCount;
    const reason = { retryIndex, waitLaw, retryAfterMs, lastDelayMs: this.#lastDelayMs };
    const delayMs = retryDelayMs(retry, reason, random.next());
    return mayBegin(deadline, this.endMs - nowMs - delayMs) ? delayMs : undefined;
  }

  #planHedge(nowMs: number): void {
    const { hedge } = this.#parts;
    if (hedge === undefined || this.#request.options.isIdempotent !== true) return;
    const delayMs = hedge.delayMs(nowMs);
    if (delayMs === undefined || this.#isSettled) return;
    this.#waitFor(delayMs, nowMs, (laterMs) => this.#tryHedge(laterMs));
  }

  /** Starts a hedge. It never waits: it needs a free permit that no other call waits for. */
  #tryHedge(nowMs: number): void {
    const { breaker, budget, counts, permits, retry } = this.#parts;
    if (retry !== undefined && this.#attemptsCount >= retry.attemptsMax) return;
    const ticket = this.#pass(nowMs);
    if (typeof ticket === "string") return;
    const permit = permits.tryTake(this.#priority, nowMs);
    if (permit === undefined || budget?.take(nowMs) === false) {
      if (permit !== undefined) counts.budgetRefused += 1;
      breaker?.end(ticket, "cancelled", nowMs);
      permit?.teach("cancelled", nowMs);
      permit?.giveBack(nowMs);
      return;
    }
    counts.hedges += 1;
    this.#start({ permit, ticket, isHedge: true });
  }

  #waitFor(delayMs: number, nowMs: number, then: (nowMs: number) => void): void {
    this.#wait = new Wait(nowMs + delayMs, (laterMs) => {
      this.#wait = undefined;
      then(laterMs);
    });
    this.timers.add(this.#wait, nowMs);
  }

  #stopWaiting(nowMs: number): void {
    if (this.#wait === undefined) return;
    this.timers.remove(this.#wait, nowMs);
    this.#wait = undefined;
  }

  /** Refuses the call. The result of the last attempt, if there is one, says more. */
  #refuse(cause: AdmissionCause, nowMs: number): void {
    if (this.#last !== undefined) {
      this.#settle(this.#last, nowMs);
      return;
    }
    const { breaker, counts, name } = this.#parts;
    counts.refused[cause] += 1;
    const retryAfterMs = cause === "breakerOpen" ? breaker?.openMs(nowMs) : undefined;
    this.#reject(new AdmissionError(name, cause, retryAfterMs));
  }

  #giveUp(reason: unknown): void {
    const { breaker, permits } = this.#parts;
    const nowMs = this.clock.monotonicMs();
    if (this.#held !== undefined) {
      this.#held.leave("cancelled", reason, nowMs);
      return;
    }
    if (this.#place !== undefined) {
      permits.leave(this.#place, nowMs);
      breaker?.end(this.#ticket, "cancelled", nowMs);
      this.#place = undefined;
    }
    this.#repeated?.abort(reason);
    this.#leaveAttempts("cancelled", reason, nowMs);
    this.#reject(reason);
  }

  #settle(settled: Settled<T>, nowMs: number): void {
    if (settled.isError) {
      this.#reject(settled.error);
    } else {
      this.#end(nowMs);
      this.#request.resolve(settled.value);
    }
    if (this.#first !== undefined || this.#hedge !== undefined) {
      this.#leaveAttempts("cancelled", superseded(), nowMs);
    }
  }

  #reject(error: unknown): void {
    this.#end(this.clock.monotonicMs());
    this.#request.reject(error);
  }

  #end(nowMs: number): void {
    this.#isSettled = true;
    this.#stopWaiting(nowMs);
    if (this.#held === undefined) this.#stopListening();
  }

  #stopListening(): void {
    if (this.#onAbort === undefined) return;
    this.#request.options.signal?.removeEventListener("abort", this.#onAbort);
    this.#onAbort = undefined;
  }

  #leaveAttempts(kind: OutcomeKind, reason: unknown, nowMs: number): void {
    const attempts = [this.#first, this.#hedge];
    this.#first = undefined;
    this.#hedge = undefined;
    for (const attempt of attempts) {
      if (attempt === undefined) continue;
      this.#learn(attempt, kind, nowMs);
      // Without the times of the losing attempts, hedges would begin earlier and earlier.
      this.#parts.hedge?.record(nowMs - attempt.permit.startMs, nowMs);
      attempt.leave(kind, reason, nowMs);
    }
  }
}

/** A time that a call waits for. */
class Wait implements Timed {
  readonly expiresMs: number;
  heapPlace: number | undefined;
  readonly expired: (nowMs: number) => void;

  constructor(expiresMs: number, expired: (nowMs: number) => void) {
    this.expiresMs = expiresMs;
    this.expired = expired;
  }
}

const served: AttemptOutcome = { kind: "served", retriable: "never" };
const failed: AttemptOutcome = { kind: "failed", retriable: "never" };
const unknownOutcome: AttemptOutcome = { kind: "cancelled", retriable: "never" };

function servedOrFailed({ isError }: Settled<unknown>): AttemptOutcome {
  return isError ? failed : served;
}

function superseded(): DOMException {
  return new DOMException("Another attempt has taken its place", "AbortError");
}
