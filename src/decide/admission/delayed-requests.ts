import type { Cancel, Clock } from "../../core/base/clock.js";

/** The most requests that this process holds for rate limits with `over: delay` at a time. */
export const delayedRequestsMax = 10_000;

/**
 * Requests that rate limits hold until they fit. A place is reserved before the limits are asked:
 * what is charged can then always be held.
 */
export class DelayedRequests {
  readonly #clock: Clock;
  readonly #countMax: number;
  #takenCount = 0;

  /** @param countMax see `delayedRequestsMax` */
  constructor(clock: Clock, countMax = delayedRequestsMax) {
    this.#clock = clock;
    this.#countMax = countMax;
  }

  /** Reserves a place; false if there is none. `release` or `hold` gives it back, exactly once. */
  reserve(): boolean {
    if (this.#takenCount >= this.#countMax) return false;
    this.#takenCount += 1;
    return true;
  }

  /** Gives a place back that nobody needs. */
  release(): void {
    this.#takenCount -= 1;
  }

  /**
   * Holds a request in its reserved place for at least this long, in milliseconds.
   *
   * @returns lets go of the request, which is then not called any more
   */
  hold(delayMs: number, onEnd: () => void): Cancel {
    const clock = this.#clock;
    const endMs = clock.monotonicMs() + delayMs;
    let cancelTimer: Cancel | undefined;
    const arm = (): void => {
      const leftMs = endMs - clock.monotonicMs();
      // Timers may fire a fraction of a millisecond early, and nobody may leave before its turn.
      if (leftMs > 0) cancelTimer = clock.schedule(Math.ceil(leftMs), arm);
      else {
        cancelTimer = undefined;
        this.release();
        onEnd();
      }
    };
    cancelTimer = clock.schedule(Math.ceil(delayMs), arm);
    return () => {
      if (cancelTimer === undefined) return;
      cancelTimer();
      cancelTimer = undefined;
      this.release();
    };
  }
}
