import { type Delayed, DelayLine, type EventCalendar } from "./calendar.js";
import type { OpenRequest } from "./run-record.js";
import type { SimulatedAttempt } from "./simulated-attempt.js";

/** The attempts of a request that are on their way, and when the next one begins beside them. */
interface Hedge {
  readonly attempts: Set<SimulatedAttempt>;
  next: { waiting: Delayed | undefined } | undefined;
}

/** Requests of a caller that begins another attempt where no answer comes for some time. */
export class Hedging {
  readonly #line: DelayLine;
  readonly #hedges = new Map<OpenRequest, Hedge>();

  /** @param delayMs how long an answer may take before there is another attempt */
  constructor(calendar: EventCalendar, delayMs: number) {
    this.#line = new DelayLine(calendar, delayMs);
  }

  /** An attempt is about to begin. @param another begins the next one, if it may */
  begins(attempt: SimulatedAttempt, another: () => void): void {
    const { request } = attempt;
    const hedge = this.#hedges.get(request) ?? { attempts: new Set(), next: undefined };
    this.#hedges.set(request, hedge);
    hedge.attempts.add(attempt);
    this.#cancelNext(hedge);
    hedge.next = this.#line.add({ elapsed: another });
  }

  /** Whether an attempt of a request is on its way. */
  isOpen(request: OpenRequest): boolean {
    return this.#hedges.has(request);
  }

  /** An attempt has ended. @returns whether others of its request are on their way still */
  ends(attempt: SimulatedAttempt): boolean {
    const hedge = this.#hedges.get(attempt.request);
    if (hedge === undefined) return false;
    hedge.attempts.delete(attempt);
    if (hedge.attempts.size > 0) return true;
    this.#forget(attempt.request, hedge);
    return false;
  }

  /** The request has its answer: the others are cancelled. */
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
