import type { ErrorCode } from "../../core/base/errors.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { DecisionTrace } from "../../decide/rate-limit/counters.js";
import type { PreparedQuery } from "../../decide/rate-limit/prepared-query.js";

/** Adds decisions to the traces that their callers have started. */
export interface DecisionTracer {
  /**
   * Starts a span for a call. Undefined if the call's trace is not recorded.
   *
   * @param metadata returns the call's fields by their lower-case names
   */
  begin(metadata: (name: string) => string | undefined): DecisionSpan | undefined;
}

/** A decision's part of a trace. It ends once, and contains text of the policy, not of callers. */
export interface DecisionSpan {
  /** Undefined if the span is not sent to anyone. */
  readonly trace: DecisionTrace | undefined;
  decided(prepared: PreparedQuery, verdict: Verdict): void;
  failed(code: ErrorCode): void;
}
