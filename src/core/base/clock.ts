/** Cancels a scheduled callback. Calling it again, or after the callback ran, has no effect. */
export type Cancel = () => void;

/**
 * The source of time for everything outside of `src/app`. `src/app` creates the real one. Tests use
 * a fake one that they advance themselves.
 */
export interface Clock {
  /**
   * Milliseconds since an arbitrary start, with fractions. Never decreases, ignores clock steps.
   */
  monotonicMs(): number;
  /** Microseconds since 1970-01-01T00:00:00Z, an integer. May step in either direction. */
  epochUs(): number;
  /** Calls back once after at least `delayMs`. Does not keep the process alive by itself. */
  schedule(delayMs: number, callback: () => void): Cancel;
  /** Calls back once after the I/O of this turn of the event loop. */
  scheduleTurn(callback: () => void): Cancel;
}

/** Randomness, seeded in tests. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** An identifier with at least 64 bits of entropy, in lower-case hexadecimal. */
  id(): string;
}
