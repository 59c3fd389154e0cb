/** Settings of a `Breaker`. */
export interface StoreBreakerOptions {
  /** Failures in a row that open it, from 1. Default 5. */
  readonly failureCountToOpen: number;
  /** How long nothing may have succeeded before it opens: shorter stalls never do. Default 100. */
  readonly failingMsToOpen: number;
  /** First wait before a probe; doubles with each failed probe. Default 100. */
  readonly probeAfterMs: number;
  /** The longest wait before a probe. Default 500, so that recovery is seen within a second. */
  readonly probeAfterMsMax: number;
}

/** What a store with a 10 ms budget wants. */
export const defaultBreakerOptions: StoreBreakerOptions = {
  failureCountToOpen: 5,
  failingMsToOpen: 100,
  probeAfterMs: 100,
  probeAfterMsMax: 500,
};

/**
 * Whether the store is worth asking. Closed: always. Open: never, but for one probe at a time after
 * a wait. Takes time as an argument; monotonic milliseconds.
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

  /** True when the caller may ask now, and must then report `succeeded` or `failed`. */
  admits(nowMs: number): boolean {
    if (this.#open === undefined) return true;
    if (this.#open.isProbing || nowMs < this.#open.probeAtMs) return false;
    this.#open.isProbing = true;
    return true;
  }

  /** An answer came in time. Answers whether this closed an open breaker. */
  succeeded(): boolean {
    const wasOpen = this.#open !== undefined;
    this.#failureCount = 0;
    this.#open = undefined;
    return wasOpen;
  }

  /** No answer came in time, or an error. Answers whether this opened a closed breaker. */
  failed(nowMs: number): boolean {
    if (this.#open !== undefined) {
      // A call that left before the breaker opened says nothing new; a failed probe does.
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
