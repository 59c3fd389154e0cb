import type { Charge } from "../../core/limits/bucket.js";
import type { ChargeResult } from "../../core/limits/gcra.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { PreparedQuery } from "./prepared-query.js";
import type { Hits, RateLimitQuery } from "./query.js";

/** A request as the law decided it, wherever it was decided. */
export interface DecidedRequest {
  readonly isDenied: boolean;
  /** What was asked, one a limit: in a failure mode not what the policy says. */
  readonly charges: readonly Charge[];
  /** One a charge; undefined where memory refused and does not know of this one. */
  readonly results: readonly (ChargeResult | undefined)[];
  readonly nowUs: number;
  /** Whether it was refused by what the store had said a moment ago. */
  readonly isFromMemory: boolean;
  /** Whether failure modes answered for the store. */
  readonly isFallback?: true;
}

/** A call with its answer, under the active policy. */
export interface AnsweredCall {
  readonly query: RateLimitQuery;
  readonly hits: Hits;
  readonly prepared: PreparedQuery;
  readonly request: DecidedRequest;
  readonly verdict: Verdict;
}

/** Looks at calls after they were answered: no call waits for it. */
export interface DecisionObserver {
  /** Whether it wants to see the call; asked once for each, before the call is decided. */
  wants(prepared: PreparedQuery): boolean;
  /** A call that some observer wants begins; undefined: this one does not want it. */
  begin(nowMs: number): ObservedCall | undefined;
}

/** A call that an observer wants to see. */
export interface ObservedCall {
  /** The call was answered. */
  note(call: AnsweredCall): void;
}
