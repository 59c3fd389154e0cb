import { refusalRows } from "../../core/admission/refusal.js";
import type { Clock } from "../../core/base/clock.js";
import { grpcStatuses, othersGrpcStatuses } from "../../core/base/grpc-status.js";
import type { AttemptOutcome } from "../../core/calls/attempt-outcome.js";
import { AdmissionError } from "../admission-error.js";
import { timeMsMax } from "../options.js";

/** How a call fails that has no answer of the service. */
export interface GrpcFailure {
  readonly code: number;
  readonly details: string;
}

/**
 * How a call fails for which an admission has no answer: refused as a proxy refuses it where that
 * has the cause, out of time, or given up.
 */
export function refusedFailure(error: unknown): GrpcFailure {
  const details = error instanceof Error ? error.message : "the call was given up";
  if (error instanceof AdmissionError) {
    const { reason } = error;
    const isOpen = reason === "breakerOpen";
    return { code: isOpen ? grpcStatuses.unavailable : refusalRows[reason].grpcStatus, details };
  }
  const name = error instanceof Error ? error.name : "";
  if (name === "TimeoutError") return { code: grpcStatuses.deadlineExceeded, details };
  if (name === "RangeError" || name === "TypeError") {
    return { code: grpcStatuses.internal, details };
  }
  return { code: othersGrpcStatuses.cancelled, details };
}

/** After headers have come, the service has begun the call. Source: gRFC A6, "Committed". */
export function begunOutcome(outcome: AttemptOutcome): AttemptOutcome {
  return outcome.retriable === "always" ? { ...outcome, retriable: "ifIdempotent" } : outcome;
}

/**
 * The lesser of a deadline and a time, in milliseconds from 0; undefined without both.
 *
 * @param deadline as a date or in milliseconds since 1970
 */
export function timeoutMsUntil(
  deadline: Date | number | undefined,
  clock: Clock,
  timeoutMs: number | undefined,
): number | undefined {
  const remainingMs = Number(deadline ?? Number.POSITIVE_INFINITY) - clock.epochUs() / 1_000;
  const leastMs = Math.min(remainingMs, timeoutMs ?? Number.POSITIVE_INFINITY);
  if (leastMs > timeMsMax) return undefined;
  // Also what is no number.
  return leastMs > 0 ? leastMs : 0;
}
