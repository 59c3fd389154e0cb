import type { ErrorCode } from "../../core/base/errors.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { DecisionTrace } from "../../decide/rate-limit/counters.js";
import type { PreparedQuery } from "../../decide/rate-limit/prepared-query.js";

/** Follows decisions through a trace that their callers began. */
export interface DecisionTracer {
  /**
   * Begins a span for a call; undefined where the call's trace is not recorded.
   *
   * @param metadata the call's fields by their lower-case names
   */
  begin(metadata: (name: string) => string | undefined): DecisionSpan | undefined;
}

/** A decision's part of a trace; ended once. It holds the policy's words and no caller's. */
export interface DecisionSpan {
  /** Undefined where the span is not sent to anybody. */
  readonly trace: DecisionTrace | undefined;
  decided(prepared: PreparedQuery, verdict: Verdict): void;
  failed(code: ErrorCode): void;
}
