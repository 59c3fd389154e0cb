import type { Cancel, Clock } from "../../src/core/base/clock.js";
import { settlePromises } from "./fake-clock.js";

interface Event {
  readonly atMs: number;
  /** Events of one time run in the order in which they were scheduled. */
  readonly order: number;
  readonly run: () => void;
  isCancelled: boolean;
}

/** Times are whole multiples of 2^-10 ms, so that sums of them are exact. */
const gridPerMs = 1_024;

/**
 * The virtual time of a whole simulation: events run one after the other, in the order of their
 * times, and everything that an event makes ready runs before the next one.
 */
export class SimulatedTime {
  #nowMs = 0;
  #order = 0;
  #eventCount = 0;
  /** The next one last. */
  readonly #events: Event[] = [];
  #turns: (() => void)[] = [];

  /** Milliseconds since the simulation began. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** The same in whole microseconds, rounded down. */
  get nowUs(): number {
    return Math.floor(this.#nowMs * 1_000);
  }

  /** How many events have run: what happens under the same number has the same cause. */
  get eventCount(): number {
    return this.#eventCount;
  }

  /** Runs it after at least `delayMs`: the time is rounded up to the grid. */
  after(delayMs: number, run: () => void): Cancel {
    const atMs = Math.ceil((this.#nowMs + Math.max(0, delayMs)) * gridPerMs) / gridPerMs;
    this.#order += 1;
    const event: Event = { atMs, order: this.#order, run, isCancelled: false };
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      // What is scheduled later runs later at the same time, so it stands before its equals.
      if ((this.#events[middle]?.atMs ?? 0) > atMs) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
    return () => {
      event.isCancelled = true;
    };
  }

  /** Runs it once all that this event made ready has run. */
  afterTurn(run: () => void): Cancel {
    const turn = (): void => run();
    this.#turns.push(turn);
    return () => {
      this.#turns = this.#turns.filter((other) => other !== turn);
    };
  }

  /** Runs all events until then. */
  async runUntil(endMs: number): Promise<void> {
    for (let next = this.#events.at(-1); next !== undefined; next = this.#events.at(-1)) {
      if (next.atMs > endMs) break;
      this.#events.pop();
      if (next.isCancelled) continue;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      this.#eventCount += 1;
      next.run();
      await this.#settle();
    }
    this.#nowMs = endMs;
  }

  async #settle(): Promise<void> {
    await settlePromises();
    while (this.#turns.length > 0) {
      for (const turn of this.#turns.splice(0)) turn();
      await settlePromises();
    }
  }
}

/** The clock of one process, which counts from its own start and ends with it. */
export class SimulatedClock implements Clock {
  readonly #time: SimulatedTime;
  readonly #offsetMs: number;
  #isStopped = false;
  /** Timers that wait: none after its last answer shows that nothing was left behind. */
  timerCount = 0;

  /** @param offsetMs whole milliseconds that the process had been up when the simulation began */
  constructor(time: SimulatedTime, offsetMs: number) {
    this.#time = time;
    this.#offsetMs = offsetMs;
  }

  monotonicMs(): number {
    return this.#time.nowMs + this.#offsetMs;
  }

  epochUs(): number {
    return this.#time.nowUs + 1_700_000_000_000_000;
  }

  schedule(delayMs: number, callback: () => void): Cancel {
    this.timerCount += 1;
    let isDone = false;
    const finish = (): boolean => {
      if (isDone) return false;
      isDone = true;
      this.timerCount -= 1;
      return !this.#isStopped;
    };
    const cancel = this.#time.after(delayMs, () => {
      if (finish()) callback();
    });
    return () => {
      finish();
      cancel();
    };
  }

  scheduleTurn(callback: () => void): Cancel {
    return this.#time.afterTurn(() => {
      if (!this.#isStopped) callback();
    });
  }

  /** The process dies: nothing that it waited for happens any more. */
  stop(): void {
    this.#isStopped = true;
  }
}
