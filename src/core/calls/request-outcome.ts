import type { Deadline } from "../admission/deadline.js";
import { httpStatuses } from "../base/http-status.js";
import type { SampleOutcome } from "../concurrency/concurrency-limit.js";
import { grpcOutcomeKind } from "./call-outcome.js";

/** HTTP statuses with which a service, or a proxy before it, reports overload. */
const overloadStatuses: ReadonlySet<number> = new Set([
  httpStatuses.tooManyRequests,
  httpStatuses.serviceUnavailable,
  httpStatuses.gatewayTimeout,
]);

/** Status of a response. */
export interface ResponseStatus {
  /** HTTP status; undefined if it was not a number. */
  readonly status: number | undefined;
  /** Value of `grpc-status` in headers or trailers, if there was one. */
  readonly grpcStatus: number | undefined;
  /** Whether the response had `x-envoy-overloaded`: a proxy on the way had no room. */
  readonly isOverloaded: boolean;
}

/**
 * How the exchange of a request ended. "completed": the response went through; "left": the caller
 * gave up before a response; "broken": the end says nothing.
 */
export type RequestEnding = "completed" | "left" | "broken";

/** A request that held a permit. */
export interface EndedRequest {
  readonly arrivedMs: number;
  /** Undefined if the request stated none. */
  readonly deadline: Deadline | undefined;
  /** Undefined if there was no response, or if it was not observed. */
  readonly response: ResponseStatus | undefined;
  /** Returns the remaining time of its caller; undefined if it is not known. */
  remainingMs(nowMs: number): number | undefined;
}

/** What a request that held a permit shows. */
export interface RequestOutcome {
  /** For the concurrency algorithm. */
  readonly outcome: SampleOutcome;
  /** Whether its caller left before a response: the request takes longer than that. */
  readonly isLeft: boolean;
  /** Whether the service accepted it, for the throttle; undefined: not known. */
  readonly isAccepted: boolean | undefined;
  /** Whether the service failed it, for the error ratio; undefined: not known. */
  readonly isFailed: boolean | undefined;
}

/** When a request ended, and how. */
interface AdmittedRequestEnd {
  readonly end: RequestEnding;
  readonly nowMs: number;
  /** Latency from which it is late, whatever its deadline; undefined: only the deadline counts. */
  readonly lateAfterMs: number | undefined;
}

/**
 * Returns what a request that held a permit shows.
 *
 * | it ended | outcome |
 * |---|---|
 * | with 429, 503, 504, `x-envoy-overloaded`, gRPC 4, 8 or 14 | dropped |
 * | after its deadline, or `lateAfterMs`, with a response | dropped |
 * | after one of them, because its caller left without a response | dropped, and left |
 * | because its caller left earlier | ignore: callers have other reasons, too |
 * | the same, with neither response nor deadline | ignore, and left: it takes longer than that |
 * | by a fault of the exchange | ignore |
 * | with another 5xx, gRPC 2, 13 or 15 | ignore: failing is often faster than serving |
 * | with any other status, or one that was not observed | success |
 */
export function requestOutcome(
  visit: EndedRequest,
  { end, nowMs, lateAfterMs }: AdmittedRequestEnd,
): RequestOutcome {
  if (end === "broken") return unknown;
  const isLate = isPast(visit, { nowMs, lateAfterMs });
  if (end === "left") {
    if (isLate) return visit.response === undefined ? leftLate : overloaded;
    return visit.response === undefined && visit.deadline === undefined ? left : unknown;
  }
  const status = visit.response?.status;
  const grpcStatus = visit.response?.grpcStatus;
  if (visit.response?.isOverloaded === true || isOverload(status, grpcStatus)) return overloaded;
  const isFailed = isError(status, grpcStatus);
  if (isLate) return isFailed ? failedLate : servedLate;
  return isFailed ? failed : served;
}

/**
 * Reports whether a caller without a deadline left. The demand for a service does not count this as
 * an end, but counts a deadline that passed as one.
 */
export function leftEarly({ outcome, isLeft }: RequestOutcome): boolean {
  return isLeft && outcome === "ignore";
}

const unknown: RequestOutcome = {
  outcome: "ignore",
  isLeft: false,
  isAccepted: undefined,
  isFailed: undefined,
};
const left: RequestOutcome = { ...unknown, isLeft: true };
const overloaded: RequestOutcome = {
  outcome: "dropped",
  isLeft: false,
  isAccepted: false,
  isFailed: true,
};
const leftLate: RequestOutcome = { ...overloaded, isLeft: true };
const failedLate: RequestOutcome = { ...overloaded, isAccepted: true };
const servedLate: RequestOutcome = { ...failedLate, isFailed: false };
const failed: RequestOutcome = { ...failedLate, outcome: "ignore" };
const served: RequestOutcome = { ...servedLate, outcome: "success" };

function isPast(
  visit: EndedRequest,
  { nowMs, lateAfterMs }: Omit<AdmittedRequestEnd, "end">,
): boolean {
  if (lateAfterMs !== undefined && nowMs - visit.arrivedMs >= lateAfterMs) return true;
  const remainingMs = visit.remainingMs(nowMs);
  return remainingMs !== undefined && remainingMs <= 0;
}

function isOverload(status: number | undefined, grpcStatus: number | undefined): boolean {
  if (status !== undefined && overloadStatuses.has(status)) return true;
  return grpcStatus !== undefined && grpcOutcomeKind(grpcStatus) === "overloaded";
}

function isError(status: number | undefined, grpcStatus: number | undefined): boolean {
  if (status !== undefined && status >= 500) return true;
  return grpcStatus !== undefined && grpcOutcomeKind(grpcStatus) === "failed";
}
