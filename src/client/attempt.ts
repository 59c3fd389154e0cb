import type { Clock } from "../core/base/clock.js";
import type { OutcomeKind } from "../core/calls/attempt-outcome.js";
import type { BreakerTicket } from "../core/calls/call-breaker.js";
import type { Attempt } from "./admission.js";
import type { HeldPermit } from "./permits.js";
import type { Timed, Timers } from "./timers.js";

/**
 * How long abandoned work keeps its permit, in milliseconds. It ignores its signal, so the service
 * may still be busy with it. After that the permit is free whatever the work does; otherwise work
 * that never settles would use up all permits.
 */
const leftPermitMsMax = 30_000;

/** The call that an attempt belongs to, as the attempt sees it. */
export interface AttemptHost {
  readonly clock: Clock;
  /** Timers for attempts that the call waits for. */
  readonly timers: Timers;
  /** Timers for attempts that no call waits for. They do not keep the process alive. */
  readonly idleTimers: Timers;
  /** Time at which the call times out, in milliseconds of the clock. Infinity: never. */
  readonly endMs: number;
  headersOf(number: number, nowMs: number): Readonly<Record<string, string>>;
  /** Reports that the attempt still ran when the call timed out. */
  timedOut(nowMs: number): void;
  /** Reports that the attempt has released its permit. */
  over(attempt: CallAttempt): void;
}

/** Parameters of a new attempt. */
interface AttemptParts {
  readonly host: AttemptHost;
  readonly permit: HeldPermit;
  readonly ticket: BreakerTicket;
  readonly number: number;
  readonly isHedge: boolean;
}

/**
 * Stage of an attempt. It only moves to later stages, and to `over` once, where the permit is
 * released.
 */
type AttemptStage =
  /** The call waits for the work. */
  | "running"
  /** The work is done, and keeps the permit while its result is still read. */
  | "held"
  /** The call no longer waits: it was cancelled or timed out, or another attempt has won. */
  | "left"
  | "over";

/** One attempt of a call: the view that its work has of it, and its permit. */
export class CallAttempt implements Attempt, Timed {
  readonly permit: HeldPermit;
  readonly ticket: BreakerTicket;
  readonly number: number;
  readonly isHedge: boolean;
  expiresMs: number;
  heapPlace: number | undefined;
  readonly #host: AttemptHost;
  #stage: AttemptStage = "running";
  #controller: AbortController | undefined;
  #abort: { readonly reason: unknown } | undefined;
  #held: Promise<unknown> | undefined;
  #kind: OutcomeKind = "cancelled";

  constructor({ host, permit, ticket, number, isHedge }: AttemptParts) {
    this.#host = host;
    this.permit = permit;
    this.ticket = ticket;
    this.number = number;
    this.isHedge = isHedge;
    this.expiresMs = host.endMs;
    if (host.endMs !== Number.POSITIVE_INFINITY) host.timers.add(this, permit.startMs);
  }

  get isRunning(): boolean {
    return this.#stage === "running";
  }

  /** Whether it keeps its permit after its work has settled. */
  get holds(): boolean {
    return this.#held !== undefined;
  }

  /** Created on first use, because it costs more than all the rest of an attempt. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abort !== undefined) this.#controller.abort(this.#abort.reason);
    }
    return this.#controller.signal;
  }

  get remainingMs(): number | undefined {
    const { clock, endMs } = this.#host;
    if (endMs === Number.POSITIVE_INFINITY) return undefined;
    return Math.max(0, endMs - clock.monotonicMs());
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#host.headersOf(this.number, this.#host.clock.monotonicMs());
  }

  holdUntil(ended: Promise<unknown>): void {
    if (this.#held !== undefined) throw new Error("holdUntil() may be called once");
    this.#held = ended;
    // It may reject before anything awaits it.
    ended.then(ignore, ignore);
  }

  /** Ends it with the call's result. Releases the permit now, or when what is held has ended. */
  finish(kind: OutcomeKind, nowMs: number): void {
    this.#host.timers.remove(this, nowMs);
    this.#kind = kind;
    if (this.#held === undefined) {
      this.#end(nowMs);
      return;
    }
    this.#stage = "held";
    if (this.expiresMs !== Number.POSITIVE_INFINITY) this.#host.idleTimers.add(this, nowMs);
    this.#waitForHeld(this.#held);
  }

  /** Abandons it: the call no longer waits for it. */
  leave(kind: OutcomeKind, reason: unknown, nowMs: number): void {
    const { timers, idleTimers } = this.#host;
    (this.#stage === "held" ? idleTimers : timers).remove(this, nowMs);
    this.#stage = "left";
    this.permit.teach(kind, nowMs);
    this.expiresMs = nowMs + leftPermitMsMax;
    idleTimers.add(this, nowMs);
    this.abort(reason);
  }

  /** Releases the permit at once, even if its result is still read: the call goes on without it. */
  release(kind: OutcomeKind, nowMs: number): void {
    this.#host.timers.remove(this, nowMs);
    this.#kind = kind;
    this.#end(nowMs);
  }

  /** Aborts it: its result is no longer needed. */
  abort(reason: unknown): void {
    this.#abort = { reason };
    this.#controller?.abort(reason);
  }

  /** Handles work that has settled after it was abandoned. */
  settledLate(): void {
    if (this.#held === undefined) this.#end(this.#host.clock.monotonicMs());
    else this.#waitForHeld(this.#held);
  }

  expired(nowMs: number): void {
    if (this.#stage === "running") this.#host.timedOut(nowMs);
    else if (this.#stage === "held") this.leave("overloaded", timeoutError(), nowMs);
    else this.#end(nowMs);
  }

  #waitForHeld(held: Promise<unknown>): void {
    const clock = this.#host.clock;
    held.then(
      () => this.#end(clock.monotonicMs()),
      () => {
        // It broke off, so its duration says nothing.
        this.#kind = "cancelled";
        this.#end(clock.monotonicMs());
      },
    );
  }

  #end(nowMs: number): void {
    this.#stage = "over";
    this.#host.idleTimers.remove(this, nowMs);
    this.permit.teach(this.#kind, nowMs);
    this.permit.giveBack(nowMs);
    this.#host.over(this);
  }
}

/** Returns the error of a call that timed out, the same as that of `AbortSignal.timeout`. */
export function timeoutError(): DOMException {
  return new DOMException("The call was aborted because its time is over", "TimeoutError");
}

function ignore(): void {}
