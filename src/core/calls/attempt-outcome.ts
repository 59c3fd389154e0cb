/** What one attempt showed of the service that it called. */
export type OutcomeKind =
  /** The service did its work, whatever it answered: also "not found" and "not allowed". */
  | "served"
  /** The service failed, but not for want of capacity: an internal error, a lost connection. */
  | "failed"
  /** The service did not take it, or not in time: 429, 503, RESOURCE_EXHAUSTED, a timeout. */
  | "overloaded"
  /** The caller gave it up: it says nothing of the service. */
  | "cancelled";

/** Whether the same request may be sent again. */
export type Retriability =
  /** The service did not begin it. */
  | "always"
  /** It may have been done, in part or as a whole: retry only what may be done twice. */
  | "ifIdempotent"
  /** It would not help, or the service asked for no retry. */
  | "never";

/** What one attempt came to. */
export interface AttemptOutcome {
  readonly kind: OutcomeKind;
  readonly retriable: Retriability;
  /**
   * Which of the two laws of waits holds: `quota` for 429 and RESOURCE_EXHAUSTED, `overload` for
   * all others. Default `overload`
   */
  readonly waitLaw?: "quota" | "overload";
  /** The least wait that the service asked for, in milliseconds from 0. Default: it said nothing */
  readonly retryAfterMs?: number;
}
