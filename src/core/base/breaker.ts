/** Settings of a `Breaker`. */
export interface StoreBreakerOptions {
  /** Consecutive failures that open it, at least 1. Default 5. */
  readonly failureCountToOpen: number;
  /** Minimum time without a success before it opens, so that short stalls never do. Default 100. */
  readonly failingMsToOpen: number;
  /** First wait before a probe. Doubles with each failed probe. Default 100. */
  readonly probeAfterMs: number;
  /** Maximum wait before a probe. Default 500, so that recovery is noticed within a second. */
  readonly probeAfterMsMax: number;
}

/** Defaults for a store with a time budget of 10 ms. */
export const defaultBreakerOptions: StoreBreakerOptions = {
  failureCountToOpen: 5,
  failingMsToOpen: 100,
  probeAfterMs: 100,
  probeAfterMsMax: 500,
};

/**
 * A circuit breaker for calls to the store. Closed: admits every call. Open: admits one probe at a
 * time, each after a wait. Times are arguments, in monotonic milliseconds.
 */
export class Breaker {
  readonly #options: StoreBreakerOptions;
  #failureCount = 0;
  #failingSinceMs = 0;
  #open: { probeAtMs: number; waitMs: number; isProbing: boolean } | undefined;

  constructor(options: StoreBreakerOptions = defaultBreakerOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** Whether the caller may call now. If so, it must then report `succeeded` or `failed`. */
  admits(nowMs: number): boolean {
    if (this.#open === undefined) return true;
    if (this.#open.isProbing || nowMs < this.#open.probeAtMs) return false;
    this.#open.isProbing = true;
    return true;
  }

  /** Records a response in time. @returns whether this closed an open breaker */
  succeeded(): boolean {
    const wasOpen = this.#open !== undefined;
    this.#failureCount = 0;
    this.#open = undefined;
    return wasOpen;
  }

  /** Records an error or a missing response. @returns whether this opened a closed breaker */
  failed(nowMs: number): boolean {
    if (this.#open !== undefined) {
      // A call from before the breaker opened shows nothing new. A failed probe does.
      if (!this.#open.isProbing) return false;
      const waitMs = Math.min(this.#open.waitMs * 2, this.#options.probeAfterMsMax);
      this.#open = { probeAtMs: nowMs + waitMs, waitMs, isProbing: false };
      return false;
    }
    if (this.#failureCount === 0) this.#failingSinceMs = nowMs;
    this.#failureCount += 1;
    const { failureCountToOpen, failingMsToOpen, probeAfterMs } = this.#options;
    if (this.#failureCount < failureCountToOpen) return false;
    if (nowMs - this.#failingSinceMs < failingMsToOpen) return false;
    this.#open = { probeAtMs: nowMs + probeAfterMs, waitMs: probeAfterMs, isProbing: false };
    return true;
  }
}
