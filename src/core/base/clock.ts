/** Cancels what was scheduled; calling it again, or after the callback ran, does nothing. */
export type Cancel = () => void;

/**
 * Time, as everything outside `src/app` sees it. The real one is made in `src/app`, tests hold a
 * fake one that they advance by hand.
 */
export interface Clock {
  /**
   * Milliseconds since an arbitrary start, with fractions; never goes back, ignores clock steps.
   */
  monotonicMs(): number;
  /** Microseconds since 1970-01-01T00:00:00Z as a whole number; may step in either direction. */
  epochUs(): number;
  /** Calls back once after at least `delayMs`; does not keep the process alive by itself. */
  schedule(delayMs: number, callback: () => void): Cancel;
  /** Calls back once after the input and output of this turn of the event loop. */
  scheduleTurn(callback: () => void): Cancel;
}

/** Randomness, seeded in tests. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** An identifier of at least 64 bits of entropy, in lower-case hexadecimal. */
  id(): string;
}
