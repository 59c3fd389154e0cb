import type { Refusal } from "../../core/admission/exchange-messages.js";
import type { Priority } from "../../core/admission/priority.js";
import type { RefusalCause } from "../../core/admission/refusal.js";
import type { RequestEnding, ResponseStatus } from "../../core/calls/request-outcome.js";

/** An admitted request, as its handler sees it. */
export interface RequestPermit {
  readonly priority: Priority;
  /** Whether to serve a degraded answer. */
  readonly brownout: boolean;
  /** How much of the answer to leave out, from 0 to 1; 0 without `brownout`. */
  readonly brownoutRatio: number;
  /** Aborts when the client has left or the handler has failed: the answer is no longer needed. */
  readonly signal: AbortSignal;
  /** Returns the rest of the caller's time, in milliseconds. Undefined if it stated none. */
  remainingMs(): number | undefined;
  /**
   * Releases the permit. Further calls do nothing. Adapters call it.
   *
   * @param response what was answered, if that is known
   */
  end(ending: RequestEnding, response?: Partial<ResponseStatus>): void;
}

/** A refusal of a request, with the answer that its caller gets. */
export interface ServerRefusal {
  readonly kind: "refused";
  readonly cause: RefusalCause;
  readonly refusal: Refusal;
}

/** The verdict on a request. */
export type ServerVerdict =
  | { readonly kind: "admitted"; readonly permit: RequestPermit }
  | ServerRefusal
  /** Its client left while it waited. */
  | { readonly kind: "left" };
