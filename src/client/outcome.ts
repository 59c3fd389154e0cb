/** What one attempt showed of the service that it called. */
export type OutcomeKind =
  /** The service did its work, whatever it answered: also "not found" and "not allowed". */
  | "served"
  /** The service failed at it, but not for want of capacity: an internal error, a lost connection. */
  | "failed"
  /** The service did not take it, or not in time: 429, 503, RESOURCE_EXHAUSTED, a timeout. */
  | "overloaded"
  /** The caller gave it up: it says nothing of the service. */
  | "cancelled";

/** What one attempt came to. */
export interface AttemptOutcome {
  readonly kind: OutcomeKind;
  /** Whether the same request may be sent again: nothing was done, or it may be done twice. */
  readonly isRetriable: boolean;
  /**
   * Which of the two laws of waits holds: `quota` for 429 and RESOURCE_EXHAUSTED, `overload` for
   * all others. Default `overload`
   */
  readonly waitLaw?: "quota" | "overload";
  /** The least wait that the service asked for, in milliseconds from 0. Default: it said nothing */
  readonly retryAfterMs?: number;
}

/** What came back of an attempt: a value, or what was thrown. */
export type Settled<T> =
  | { readonly isError: false; readonly value: T }
  | { readonly isError: true; readonly error: unknown };

/** Tells what an attempt came to; each adapter has its own. */
export type Classify<T> = (settled: Settled<T>) => AttemptOutcome;
