import type { Cancel, Clock } from "../../core/base/clock.js";

/** Maximum number of requests that this process delays at the same time (`over: delay`). */
export const delayedRequestsMax = 10_000;

/**
 * Requests that rate limits delay until they fit. A place is reserved before the limits are
 * charged, so that a charged request can always be delayed.
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

  /** Gives back a reserved place that is not needed. */
  release(): void {
    this.#takenCount -= 1;
  }

  /**
   * Delays a request in its reserved place by at least this time, in milliseconds.
   *
   * @returns cancels the delay; `onEnd` is then not called
   */
  hold(delayMs: number, onEnd: () => void): Cancel {
    const clock = this.#clock;
    const endMs = clock.monotonicMs() + delayMs;
    let cancelTimer: Cancel | undefined;
    const arm = (): void => {
      const leftMs = endMs - clock.monotonicMs();
      // Timers may fire a fraction of a millisecond early, and no request may pass before its time.
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
