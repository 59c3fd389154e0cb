import type { Deadline } from "../admission/deadline.js";
import { httpStatuses } from "../base/http-status.js";
import type { SampleOutcome } from "../concurrency/concurrency-limit.js";
import { grpcOutcomeKind } from "./call-outcome.js";

/** HTTP statuses by which a service, or a proxy before it, says that it cannot now. */
const overloadStatuses: ReadonlySet<number> = new Set([
  httpStatuses.tooManyRequests,
  httpStatuses.serviceUnavailable,
  httpStatuses.gatewayTimeout,
]);

/** What the service said when it answered a request. */
export interface ResponseStatus {
  /** HTTP status; undefined where it was no number. */
  readonly status: number | undefined;
  /** Of `grpc-status` among headers or trailers, where there was one. */
  readonly grpcStatus: number | undefined;
  /** Whether there was `x-envoy-overloaded`: a proxy on the way had no room. */
  readonly isOverloaded: boolean;
}

/**
 * How the exchange of a request ended: "completed" the response went through, "left" the caller
 * gave up before a response, "broken" it ended in a way that says nothing.
 */
export type RequestEnding = "completed" | "left" | "broken";

/** What has to be known of a request that held a permit. */
export interface EndedRequest {
  readonly arrivedMs: number;
  /** Undefined where it stated none. */
  readonly deadline: Deadline | undefined;
  /** Undefined where nothing was answered, or nobody looked. */
  readonly response: ResponseStatus | undefined;
  /** What is left of its caller's time; undefined where nobody said. */
  remainingMs(nowMs: number): number | undefined;
}

/** What is learnt from a request that held a permit. */
export interface RequestOutcome {
  /** For the concurrency law. */
  readonly outcome: SampleOutcome;
  /** Whether its caller left before the service answered: it takes longer than that. */
  readonly isLeft: boolean;
  /** Whether the service took it on, for the throttle; undefined: nobody can say. */
  readonly isAccepted: boolean | undefined;
  /** Whether the service failed it, for the error ratio; undefined: nobody can say. */
  readonly isFailed: boolean | undefined;
}

/** When a request ended, and how. */
interface AdmittedRequestEnd {
  readonly end: RequestEnding;
  readonly nowMs: number;
  /** From then on it is late whatever its deadline says; undefined: only the deadline counts. */
  readonly lateAfterMs: number | undefined;
}

/**
 * What a request taught that held a permit.
 *
 * | it ended | outcome |
 * |---|---|
 * | with 429, 503, 504, `x-envoy-overloaded`, gRPC 4, 8 or 14 | dropped |
 * | after its deadline, or `lateAfterMs`, but it was answered | dropped |
 * | because its caller left then, unanswered | dropped, and left |
 * | because its caller left earlier | ignore: callers have reasons of their own |
 * | the same, unanswered and without a deadline | ignore, and left: it takes longer than that |
 * | by a fault of the exchange | ignore |
 * | with another 5xx, gRPC 2, 13 or 15 | ignore: failing is often faster than serving |
 * | with any other status, or one that nobody looked at | success |
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
 * Whether a caller without a deadline left: no end that the demand of a service counts, as a
 * deadline that passed is one.
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
