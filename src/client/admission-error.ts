/** Why a call was not made, or not made again. */
export type AdmissionCause =
  /** All permits are in use, and there is no queue. */
  | "concurrency"
  /** The queue has no place left for a call of this priority. */
  | "queueFull"
  /** It waited as long as the queue allows, or CoDel dropped it. */
  | "queueTimeout"
  /** The adaptive throttle refused it: the service refuses most of what it is sent. */
  | "throttle"
  /** The circuit breaker is open. */
  | "breakerOpen"
  /** Too little of its time is left to begin an attempt. */
  | "deadline";

/** A call that was refused on this side, before anything was sent. */
export class AdmissionError extends Error {
  override readonly name = "AdmissionError";
  /** The admission that refused it. */
  readonly admission: string;
  readonly reason: AdmissionCause;
  /** When it is worth trying again, in milliseconds from 0; undefined: not known. */
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
