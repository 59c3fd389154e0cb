import { type Delayed, DelayLine, type EventCalendar } from "./calendar.js";
import type { OpenRequest } from "./run-record.js";
import type { SimulatedAttempt } from "./simulated-attempt.js";

/** Attempts of a request in flight, and the time of the next parallel one. */
interface Hedge {
  readonly attempts: Set<SimulatedAttempt>;
  next: { waiting: Delayed | undefined } | undefined;
}

/** Hedges a caller's requests: starts another attempt if there is no response for some time. */
export class Hedging {
  readonly #line: DelayLine;
  readonly #hedges = new Map<OpenRequest, Hedge>();

  /** @param delayMs time without a response before another attempt starts */
  constructor(calendar: EventCalendar, delayMs: number) {
    this.#line = new DelayLine(calendar, delayMs);
  }

  /** Registers an attempt about to start. @param another starts the next one, if allowed */
  begins(attempt: SimulatedAttempt, another: () => void): void {
    const { request } = attempt;
    const hedge = this.#hedges.get(request) ?? { attempts: new Set(), next: undefined };
    this.#hedges.set(request, hedge);
    hedge.attempts.add(attempt);
    this.#cancelNext(hedge);
    hedge.next = this.#line.add({ elapsed: another });
  }

  /** Reports whether an attempt of a request is in flight. */
  isOpen(request: OpenRequest): boolean {
    return this.#hedges.has(request);
  }

  /** Registers the end of an attempt. @returns whether others of its request are in flight */
  ends(attempt: SimulatedAttempt): boolean {
    const hedge = this.#hedges.get(attempt.request);
    if (hedge === undefined) return false;
    hedge.attempts.delete(attempt);
    if (hedge.attempts.size > 0) return true;
    this.#forget(attempt.request, hedge);
    return false;
  }

  /** Cancels the other attempts of a request that has its response. */
  cancelOthers({ request }: SimulatedAttempt): void {
    const hedge = this.#hedges.get(request);
    if (hedge === undefined) return;
    this.#forget(request, hedge);
    for (const other of hedge.attempts) other.cancel();
  }

  #forget(request: OpenRequest, hedge: Hedge): void {
    this.#cancelNext(hedge);
    this.#hedges.delete(request);
  }

  #cancelNext({ next }: Hedge): void {
    if (next !== undefined) next.waiting = undefined;
  }
}
