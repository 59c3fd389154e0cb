import { type ErrorCode, toServiceError } from "../../core/base/errors.js";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { CallFailure } from "../../wire/grpc/service.js";

/** The one place where a failure becomes a gRPC status or an HTTP status. */

/** The statuses of one error code. */
interface StatusRow {
  readonly grpc: number;
  readonly http: number;
}

/** Every code of core/base/errors.ts with its statuses. */
export const statusRows: Readonly<Record<ErrorCode, StatusRow>> = {
  STORE_TIMEOUT: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  STORE_UNAVAILABLE: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  STORE_CIRCUIT_OPEN: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  STORE_OUT_OF_MEMORY: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  STORE_NOT_SAVING: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  STORE_TOO_FEW_REPLICAS: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  STORE_TOO_MANY_CLIENTS: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  STORE_READ_ONLY: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  STORE_LOADING: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  STORE_UNAUTHENTICATED: {
    grpc: grpcStatuses.failedPrecondition,
    http: httpStatuses.serviceUnavailable,
  },
  STORE_ACCESS_DENIED: {
    grpc: grpcStatuses.failedPrecondition,
    http: httpStatuses.serviceUnavailable,
  },
  STORE_TLS_FAILED: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  STORE_PROTOCOL: { grpc: grpcStatuses.internal, http: httpStatuses.badGateway },
  STORE_FULL: { grpc: grpcStatuses.resourceExhausted, http: httpStatuses.serviceUnavailable },
  STORE_CLOSED: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  // From polls in the background: no call is answered with them.
  SIGNAL_TIMEOUT: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  SIGNAL_UNAVAILABLE: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  SIGNAL_REFUSED: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  SIGNAL_MALFORMED: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  SIGNAL_TOO_LARGE: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  SIGNAL_EMPTY: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  SIGNAL_UNCONFIGURED: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  // As in the failure mode `error`: callers cannot tell why there is no decision.
  OVERLOADED: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  MEMORY_FULL: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  POLICY_MISSING: { grpc: grpcStatuses.unavailable, http: httpStatuses.serviceUnavailable },
  // Over gRPC, RateLimitService answers OVER_LIMIT: an error could let the request pass.
  REQUEST_TOO_LARGE: { grpc: grpcStatuses.resourceExhausted, http: httpStatuses.contentTooLarge },
  REQUEST_INVALID: { grpc: grpcStatuses.invalidArgument, http: httpStatuses.badRequest },
  DEADLINE_PASSED: { grpc: grpcStatuses.deadlineExceeded, http: httpStatuses.gatewayTimeout },
  LISTEN_FAILED: { grpc: grpcStatuses.internal, http: httpStatuses.internalServerError },
  CONFIG_INVALID: { grpc: grpcStatuses.internal, http: httpStatuses.internalServerError },
  INTERNAL: { grpc: grpcStatuses.internal, http: httpStatuses.internalServerError },
};

/** The response to a failed call: a `CallFailure`, with the code of its error. */
interface MappedFailure extends CallFailure {
  readonly code: ErrorCode;
  readonly httpStatus: number;
}

/**
 * Converts any thrown value to what its caller may see. The message of a bug is not disclosed: its
 * caller learns only that it was one.
 */
export function toFailure(thrown: unknown): MappedFailure {
  const { code, message } = toServiceError(thrown);
  const row = statusRows[code];
  return { code, grpcStatus: row.grpc, httpStatus: row.http, message };
}

/** A failure that is not an environment error: an unknown name, or one watcher too many. */
export class GrpcFailure extends Error implements CallFailure {
  override readonly name = "GrpcFailure";
  readonly grpcStatus: number;

  constructor(grpcStatus: number, message: string) {
    super(message);
    this.grpcStatus = grpcStatus;
  }
}

/** Converts any thrown value to a gRPC failure, and reports whether it is a bug. */
export function toCallFailure(thrown: unknown): CallFailure & { readonly isBug: boolean } {
  if (thrown instanceof GrpcFailure) {
    return { grpcStatus: thrown.grpcStatus, message: thrown.message, isBug: false };
  }
  const { grpcStatus, message, code } = toFailure(thrown);
  return { grpcStatus, message, isBug: code === "INTERNAL" };
}
