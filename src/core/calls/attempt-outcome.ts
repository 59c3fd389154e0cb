/** What one attempt shows about the service that it called. */
export type OutcomeKind =
  /** The service did its work, whatever it answered: also "not found" and "not allowed". */
  | "served"
  /** The service failed, but not for lack of capacity: an internal error, a lost connection. */
  | "failed"
  /** The service did not accept it, or not in time: 429, 503, RESOURCE_EXHAUSTED, a timeout. */
  | "overloaded"
  /** The caller gave up, which says nothing about the service. */
  | "cancelled";

/** Whether the same request may be sent again. */
export type Retriability =
  /** The service did not begin it. */
  | "always"
  /** It may have been done, partly or completely: retry only what may be done twice. */
  | "ifIdempotent"
  /** A retry would not help, or the service asked for none. */
  | "never";

/** Outcome of one attempt. */
export interface AttemptOutcome {
  readonly kind: OutcomeKind;
  readonly retriable: Retriability;
  /**
   * Which of the two backoff formulas applies: `quota` for 429 and RESOURCE_EXHAUSTED, `overload`
   * for all others. Default `overload`
   */
  readonly waitLaw?: "quota" | "overload";
  /** Minimum wait that the service asked for, in milliseconds from 0. Default: it asked for none */
  readonly retryAfterMs?: number;
}
