import type { Charge } from "../../core/limits/bucket.js";
import type { ChargeResult } from "../../core/limits/gcra.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { PreparedQuery } from "./prepared-query.js";
import type { Hits, RateLimitQuery } from "./query.js";

/** A decided request, whether by the store, from the cache or by a failure mode. */
export interface DecidedRequest {
  readonly isDenied: boolean;
  /** The charges, one per limit. In a failure mode they differ from the policy. */
  readonly charges: readonly Charge[];
  /** One per charge. Undefined if a denial from the cache does not cover this charge. */
  readonly results: readonly (ChargeResult | undefined)[];
  readonly nowUs: number;
  /** Whether it was denied from the cache. */
  readonly isFromMemory: boolean;
  /** Whether failure modes decided in place of the store. */
  readonly isFallback?: true;
}

/** A call with its response, under the active policy. */
export interface AnsweredCall {
  readonly query: RateLimitQuery;
  readonly hits: Hits;
  readonly prepared: PreparedQuery;
  readonly request: DecidedRequest;
  readonly verdict: Verdict;
}

/** Receives calls after they were answered. No call waits for an observer. */
export interface DecisionObserver {
  /** Whether the observer wants this call. Called once per call, before the decision. */
  wants(prepared: PreparedQuery): boolean;
  /** Called when a call starts that some observer wants. Undefined: this observer ignores it. */
  begin(nowMs: number): ObservedCall | undefined;
}

/** A call that an observer follows. */
export interface ObservedCall {
  /** The call was answered. */
  note(call: AnsweredCall): void;
}
