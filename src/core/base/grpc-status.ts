/**
 * The gRPC statuses that Headgate returns. Their numbers are defined only here. UNKNOWN (2) is not
 * used: it tells a caller nothing, and makes Envoy pass the request regardless of its failure mode.
 *
 * Source: gRPC core, "Status codes and their use in gRPC".
 */
export const grpcStatuses = {
  ok: 0,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const;

/** Statuses that only other servers return. */
export const othersGrpcStatuses = {
  cancelled: 1,
  unknown: 2,
  alreadyExists: 6,
  aborted: 10,
  outOfRange: 11,
  dataLoss: 15,
  unauthenticated: 16,
} as const;
