import type { Cancel, Clock } from "../../core/base/clock.js";
import type { Attempt } from "../admission.js";

/** How long a permit is held. */
export interface HoldOptions {
  readonly clock: Clock;
  /** See `AdapterOptions`. */
  readonly unreadMsMax: number;
}

/**
 * Holds the permit of an attempt while its response is read: until its end, until the attempt is
 * aborted, or until the reader has not asked for more during `unreadMsMax`.
 */
export class PermitHold {
  /** Resolves when the permit is no longer held. */
  readonly ended: Promise<void>;
  /** Releases the permit. Further calls do nothing. */
  readonly end: () => void;
  readonly #options: HoldOptions;
  #isEnded = false;
  #cancel: Cancel | undefined;

  constructor(attempt: Attempt, options: HoldOptions) {
    const { signal } = attempt;
    this.#options = options;
    let release = (): void => {};
    this.ended = new Promise((resolve) => {
      release = resolve;
    });
    attempt.holdUntil(this.ended);
    this.end = () => {
      this.asked();
      this.#isEnded = true;
      signal.removeEventListener("abort", this.end);
      release();
    };
    signal.addEventListener("abort", this.end);
    if (signal.aborted) this.end();
  }

  /** Notes that the reader asks for more. */
  asked(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** Notes that the reader does not ask for more. */
  rested(): void {
    if (this.#isEnded || this.#cancel !== undefined) return;
    const { clock, unreadMsMax } = this.#options;
    this.#cancel = clock.schedule(unreadMsMax, this.end);
  }
}
