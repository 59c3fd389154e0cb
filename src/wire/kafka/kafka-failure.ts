import { type ErrorCode, ServiceError } from "../../core/base/errors.js";

/** The errors of brokers that have a meaning here; all others are refusals. */
const failures: ReadonlyMap<number, readonly [name: string, code: ErrorCode]> = new Map([
  [1, ["OFFSET_OUT_OF_RANGE", "SIGNAL_EMPTY"]],
  [3, ["UNKNOWN_TOPIC_OR_PARTITION", "SIGNAL_EMPTY"]],
  [5, ["LEADER_NOT_AVAILABLE", "SIGNAL_UNAVAILABLE"]],
  [6, ["NOT_LEADER_OR_FOLLOWER", "SIGNAL_UNAVAILABLE"]],
  [7, ["REQUEST_TIMED_OUT", "SIGNAL_UNAVAILABLE"]],
  [9, ["REPLICA_NOT_AVAILABLE", "SIGNAL_UNAVAILABLE"]],
  [14, ["COORDINATOR_LOAD_IN_PROGRESS", "SIGNAL_UNAVAILABLE"]],
  [15, ["COORDINATOR_NOT_AVAILABLE", "SIGNAL_UNAVAILABLE"]],
  [16, ["NOT_COORDINATOR", "SIGNAL_UNAVAILABLE"]],
  [17, ["INVALID_TOPIC_EXCEPTION", "SIGNAL_REFUSED"]],
  [24, ["INVALID_GROUP_ID", "SIGNAL_REFUSED"]],
  [29, ["TOPIC_AUTHORIZATION_FAILED", "SIGNAL_REFUSED"]],
  [30, ["GROUP_AUTHORIZATION_FAILED", "SIGNAL_REFUSED"]],
  [31, ["CLUSTER_AUTHORIZATION_FAILED", "SIGNAL_REFUSED"]],
  [33, ["UNSUPPORTED_SASL_MECHANISM", "SIGNAL_REFUSED"]],
  [34, ["ILLEGAL_SASL_STATE", "SIGNAL_REFUSED"]],
  [56, ["KAFKA_STORAGE_ERROR", "SIGNAL_UNAVAILABLE"]],
  [58, ["SASL_AUTHENTICATION_FAILED", "SIGNAL_REFUSED"]],
  [69, ["GROUP_ID_NOT_FOUND", "SIGNAL_EMPTY"]],
]);

/**
 * Returns the failure for a broker's error code; undefined for 0. The text of a broker is never
 * repeated.
 *
 * @param subject what was asked about, by its place in the policy or by the kind of request
 * Source: Apache Kafka, "Protocol", error codes.
 */
export function kafkaFailure(code: number, subject: string): ServiceError | undefined {
  if (code === 0) return undefined;
  const [name, ours] = failures.get(code) ?? [`error ${code}`, "SIGNAL_REFUSED" as const];
  return new ServiceError(ours, `The broker answered ${name} (${subject}).`);
}

/** @throws ServiceError what `kafkaFailure` returns */
export function refuseFailure(code: number, subject: string): void {
  const failure = kafkaFailure(code, subject);
  if (failure !== undefined) throw failure;
}
