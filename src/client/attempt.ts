import type { Clock } from "../core/base/clock.js";
import type { OutcomeKind } from "../core/calls/attempt-outcome.js";
import type { BreakerTicket } from "../core/calls/call-breaker.js";
import type { Attempt } from "./admission.js";
import type { HeldPermit } from "./permits.js";
import type { Timed, Timers } from "./timers.js";

/**
 * How long work that was left behind keeps its permit, in milliseconds: it ignores its signal, so
 * the service may still be busy with it. After that the permit is free whatever the work does; else
 * work that never settles would use up all permits.
 */
const leftPermitMsMax = 30_000;

/** The call of an attempt. */
export interface AttemptHost {
  readonly clock: Clock;
  /** While somebody waits for an attempt. */
  readonly timers: Timers;
  /** While nobody does: they keep no process alive. */
  readonly idleTimers: Timers;
  /** When the call is out of time, in milliseconds of the clock; Infinity: never. */
  readonly endMs: number;
  headersOf(number: number, nowMs: number): Readonly<Record<string, string>>;
  /** It still ran when the call's time was over. */
  timedOut(nowMs: number): void;
  /** It has given its permit back. */
  over(attempt: CallAttempt): void;
}

/** What an attempt begins with. */
interface AttemptParts {
  readonly host: AttemptHost;
  readonly permit: HeldPermit;
  readonly ticket: BreakerTicket;
  readonly number: number;
  readonly isHedge: boolean;
}

/**
 * Where an attempt stands. The way leads from each stage to later ones only, and to `over` once,
 * where the permit is given back.
 */
type AttemptStage =
  /** The call waits for its work. */
  | "running"
  /** Its work is done, and keeps the permit for what is still read of it. */
  | "held"
  /** The call waits no more: it was given up, out of time, or another attempt has won. */
  | "left"
  | "over";

/** One attempt of a call: its work's view of it, and its permit. */
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

  /** Made when it is asked for: it costs more than all else here. */
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
    // It may fail before anybody looks.
    ended.then(ignore, ignore);
  }

  /** The call has its result. The permit goes now, or once what is held has ended. */
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

  /** The call does not wait for it any more. */
  leave(kind: OutcomeKind, reason: unknown, nowMs: number): void {
    const { timers, idleTimers } = this.#host;
    (this.#stage === "held" ? idleTimers : timers).remove(this, nowMs);
    this.#stage = "left";
    this.permit.teach(kind, nowMs);
    this.expiresMs = nowMs + leftPermitMsMax;
    idleTimers.add(this, nowMs);
    this.abort(reason);
  }

  /** The call goes on without it: the permit goes now, whatever is still read of it. */
  release(kind: OutcomeKind, nowMs: number): void {
    this.#host.timers.remove(this, nowMs);
    this.#kind = kind;
    this.#end(nowMs);
  }

  /** Nobody wants what came of it any more. */
  abort(reason: unknown): void {
    this.#abort = { reason };
    this.#controller?.abort(reason);
  }

  /** Its work has settled after it was left. */
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
        // It broke off: how long it took says nothing.
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

/** What a call that is out of time fails with, as `AbortSignal.timeout` has it. */
export function timeoutError(): DOMException {
  return new DOMException("The call was aborted because its time is over", "TimeoutError");
}

function ignore(): void {}
