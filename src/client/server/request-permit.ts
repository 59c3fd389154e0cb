import type { Refusal } from "../../core/admission/exchange-messages.js";
import type { Priority } from "../../core/admission/priority.js";
import type { RefusalCause } from "../../core/admission/refusal.js";
import type { RequestEnding, ResponseStatus } from "../../core/calls/request-outcome.js";

/** An admitted request, as its handler sees it. */
export interface RequestPermit {
  readonly priority: Priority;
  /** Whether to serve a degraded answer now. */
  readonly brownout: boolean;
  /** How much of the answer to leave out, 0 to 1; 0 without `brownout`. */
  readonly brownoutRatio: number;
  /** Aborts when the client has left or the handler has failed: the work is for nobody. */
  readonly signal: AbortSignal;
  /** What is left of its caller's time, in milliseconds; undefined where it stated none. */
  remainingMs(): number | undefined;
  /**
   * Gives the permit back; once more does nothing. Adapters call it.
   *
   * @param response what was answered, where that is known
   */
  end(ending: RequestEnding, response?: Partial<ResponseStatus>): void;
}

/** A request that is refused, and what its caller is told. */
export interface ServerRefusal {
  readonly kind: "refused";
  readonly cause: RefusalCause;
  readonly refusal: Refusal;
}

/** What became of a request. */
export type ServerVerdict =
  | { readonly kind: "admitted"; readonly permit: RequestPermit }
  | ServerRefusal
  /** Its client left while it waited. */
  | { readonly kind: "left" };
