import { refusalRows } from "../../core/admission/refusal.js";
import { grpcStatuses, othersGrpcStatuses } from "../../core/base/grpc-status.js";
import { AdmissionError } from "../admission-error.js";
import { timeMsMax } from "../options.js";

/** How a call fails that has no answer of the service. */
export interface GrpcCallFailure {
  readonly code: number;
  readonly details: string;
}

/**
 * How a call fails that an admission refused, as a proxy does it where that has the cause; that was
 * out of time; or that was given up. Undefined for all other errors.
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
 * The least of times that a call may take, in milliseconds from 0; undefined where none bounds it.
 * What is no number leaves nothing.
 */
export function callTimeoutMs(timeoutsMs: readonly (number | undefined)[]): number | undefined {
  const leastMs = Math.min(...timeoutsMs.map((ms) => ms ?? Number.POSITIVE_INFINITY));
  if (leastMs > timeMsMax) return undefined;
  return Number.isNaN(leastMs) ? 0 : Math.max(0, leastMs);
}
