import { refusalRows } from "../../core/admission/refusal.js";
import { grpcStatuses, othersGrpcStatuses } from "../../core/base/grpc-status.js";
import { AdmissionError } from "../admission-error.js";
import { timeMsMax } from "../options.js";

/** Status of a failed call that has no answer from the service. */
export interface GrpcCallFailure {
  readonly code: number;
  readonly details: string;
}

/**
 * Returns the status of a call that an admission refused (the status of a proxy, if proxies know
 * the cause), that timed out, or that was cancelled. Undefined for all other errors.
 */
export function callFailure(error: unknown): GrpcCallFailure | undefined {
  if (!(error instanceof Error)) return undefined;
  const { name, message: details } = error;
  if (error instanceof AdmissionError) {
    const { reason } = error;
    const isOpen = reason === "breakerOpen";
    return { code: isOpen ? grpcStatuses.unavailable : refusalRows[reason].grpcStatus, details };
  }
  if (name === "TimeoutError") return { code: grpcStatuses.deadlineExceeded, details };
  if (name === "AbortError") return { code: othersGrpcStatuses.cancelled, details };
  return undefined;
}

/**
 * Returns the shortest of the times that a call may take, in milliseconds from 0. Undefined if none
 * bounds it. A time that is not a number leaves 0 ms.
 */
export function callTimeoutMs(timeoutsMs: readonly (number | undefined)[]): number | undefined {
  const leastMs = Math.min(...timeoutsMs.map((ms) => ms ?? Number.POSITIVE_INFINITY));
  if (leastMs > timeMsMax) return undefined;
  return Number.isNaN(leastMs) ? 0 : Math.max(0, leastMs);
}
