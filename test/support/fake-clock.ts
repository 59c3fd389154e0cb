import type { Cancel, Clock } from "../../src/core/base/clock.js";

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}

/** Callbacks of one `runTurns` or `advance`: a loop that never settles is a failure, not a hang. */
const callbackCountMax = 100_000;

/**
 * A clock that stands still until a test moves it. Timers fire inside `advance`, in the order of
 * their times; what was scheduled for the turn's end fires in `runTurns`, and before each timer.
 */
export class FakeClock implements Clock {
  #nowMs: number;
  #epochOffsetUs: number;
  #timers: Timer[] = [];
  #turns: (() => void)[] = [];

  constructor(start: { readonly monotonicMs?: number; readonly epochUs?: number } = {}) {
    this.#nowMs = start.monotonicMs ?? 1_000;
    this.#epochOffsetUs = (start.epochUs ?? 1_700_000_000_000_000) - this.#nowMs * 1_000;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  epochUs(): number {
    return Math.floor(this.#nowMs * 1_000 + this.#epochOffsetUs);
  }

  schedule(delayMs: number, callback: () => void): Cancel {
    const timer: Timer = { atMs: this.#nowMs + Math.max(0, delayMs), callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  scheduleTurn(callback: () => void): Cancel {
    const turn = (): void => callback();
    this.#turns.push(turn);
    return () => {
      this.#turns = this.#turns.filter((other) => other !== turn);
    };
  }

  /** How many timers wait: 0 shows that nothing was left behind. */
  get timerCount(): number {
    return this.#timers.length;
  }

  /** Runs what waits for the end of the turn, also what that adds. */
  runTurns(): void {
    for (let count = 0; count < callbackCountMax; count += 1) {
      const turn = this.#turns.shift();
      if (turn === undefined) return;
      turn();
    }
    throw new Error("the turns never end");
  }

  /** Moves time forward, firing every timer on the way at its own time. */
  advance(byMs: number): void {
    const endMs = this.#nowMs + byMs;
    for (let count = 0; count < callbackCountMax; count += 1) {
      this.runTurns();
      const timer = this.#nextUntil(endMs);
      if (timer === undefined) {
        this.#nowMs = endMs;
        return;
      }
      this.#timers = this.#timers.filter((other) => other !== timer);
      this.#nowMs = Math.max(this.#nowMs, timer.atMs);
      timer.callback();
    }
    throw new Error("the timers never end");
  }

  /** Moves time forward in steps, letting promises settle after each. */
  async advanceAsync(byMs: number, stepMs = byMs): Promise<void> {
    for (let movedMs = 0; movedMs < byMs; movedMs += stepMs) {
      this.advance(Math.min(stepMs, byMs - movedMs));
      await settlePromises();
    }
  }

  /** Lets time pass while nothing runs, as in a process that was stopped: timers fire late. */
  stall(byMs: number): void {
    this.#nowMs += byMs;
  }

  /** A step of the wall clock, which no monotonic reading sees. */
  stepEpoch(byUs: number): void {
    this.#epochOffsetUs += byUs;
  }

  #nextUntil(endMs: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs <= endMs && (next === undefined || timer.atMs < next.atMs)) next = timer;
    }
    return next;
  }
}

/** Lets every promise that is already resolved run its reactions, however deep they chain. */
export async function settlePromises(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
