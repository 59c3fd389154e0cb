/** Reason why a call, or a retry of it, was not made. */
export type AdmissionCause =
  /** All permits are in use, and there is no queue. */
  | "concurrency"
  /** The queue has no room for a call of this priority. */
  | "queueFull"
  /** The call waited as long as the queue allows, or CoDel dropped it. */
  | "queueTimeout"
  /** The adaptive throttle refused the call: the service refuses most of its requests. */
  | "throttle"
  /** The circuit breaker is open. */
  | "breakerOpen"
  /** Too little time is left to begin an attempt. */
  | "deadline";

/** Error of a call that was refused on this side, before anything was sent. */
export class AdmissionError extends Error {
  override readonly name = "AdmissionError";
  /** Name of the admission that refused the call. */
  readonly admission: string;
  readonly reason: AdmissionCause;
  /** Time until a retry is worthwhile, in milliseconds from 0. Undefined if not known. */
  readonly retryAfterMs: number | undefined;

  constructor(admission: string, reason: AdmissionCause, retryAfterMs?: number) {
    super(`${admission}: ${messages[reason]}`);
    this.admission = admission;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

const messages: Readonly<Record<AdmissionCause, string>> = {
  concurrency: "all permits are in use",
  queueFull: "the queue is full",
  queueTimeout: "no permit came free in time",
  throttle: "the service refuses most requests, so this one was not sent",
  breakerOpen: "the circuit breaker is open",
  deadline: "too little time is left for an attempt",
};
