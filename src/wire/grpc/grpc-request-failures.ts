import { grpcStatuses } from "../../core/base/grpc-status.js";
import { partialMsMax } from "./partial-bytes.js";
import type { CallFailure } from "./service.js";

/** Returns the failure for a message above the maximum size. */
export function tooLarge(bytesMax: number): CallFailure {
  const message = `A message has more than ${bytesMax} bytes.`;
  return { grpcStatus: grpcStatuses.resourceExhausted, message };
}

/**
 * Returns the failure for a compressed message. None is read, because Envoy's client does not
 * compress, and the decompressed size cannot be known before.
 *
 * Source: gRPC core, "Compression in gRPC": without an encoding, a message cannot be decoded.
 *
 * @param encoding `grpc-encoding` of the call; undefined if it has none
 */
export function compressed(encoding: string | undefined): CallFailure {
  const isNamed = encoding !== undefined && encoding !== "identity";
  return isNamed ? compressedMessage : unnamedEncoding;
}

const compressedMessage: CallFailure = {
  grpcStatus: grpcStatuses.unimplemented,
  message: "Compressed messages are not accepted: send them with the encoding identity.",
};

const unnamedEncoding: CallFailure = {
  grpcStatus: grpcStatuses.internal,
  message: "A message is compressed, but the call has no grpc-encoding.",
};

/** Failure if there is no room for more of an incomplete request. */
export const noRoom: CallFailure = {
  grpcStatus: grpcStatuses.resourceExhausted,
  message: "Unfinished requests take too much memory.",
};

/** Failure of callers that begin a request and do not complete it. */
export const tooSlow: CallFailure = {
  grpcStatus: grpcStatuses.deadlineExceeded,
  message: `The request was not complete after ${partialMsMax / 1_000} s.`,
};

/** Failure for a second message if a method takes only one. */
export const secondRequest: CallFailure = {
  grpcStatus: grpcStatuses.unimplemented,
  message: "This method accepts only one message.",
};

/** Failure for a message with an invalid head. */
export const malformedMessage: CallFailure = {
  grpcStatus: grpcStatuses.internal,
  message: "The first byte of a message must be 0, or 1 if it is compressed.",
};
