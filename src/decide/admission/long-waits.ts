/** A wait for a permit from which it is told, in milliseconds. */
export const longWaitMs = 100;

/** Long waits of a span of time. */
export interface LongWaitsTold {
  /** Whose wait was the longest, as metrics name it. */
  readonly key: string;
  readonly count: number;
  readonly longestMs: number;
}

/** Adds up waits of those who were let in after long: an overload has thousands, and one line. */
export class LongWaits {
  #told: LongWaitsTold | undefined;

  /** One was let in; a wait up to `longWaitMs` is not long. */
  add(key: string, waitMs: number): void {
    if (waitMs <= longWaitMs) return;
    const before = this.#told ?? { key, count: 0, longestMs: waitMs };
    const longest = waitMs > before.longestMs ? { key, longestMs: waitMs } : {};
    this.#told = { ...before, ...longest, count: before.count + 1 };
  }

  /** What there was since the last call; undefined: nothing. */
  take(): LongWaitsTold | undefined {
    const told = this.#told;
    this.#told = undefined;
    return told;
  }
}
