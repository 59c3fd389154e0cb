import type { Verdict } from "../../core/limits/verdict.js";
import type { DecidedRequest } from "./decided-request.js";
import type { PreparedQuery } from "./prepared-query.js";
import type { Hits, RateLimitQuery } from "./query.js";

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
