import { grpcStatuses } from "../../core/base/grpc-status.js";
import { partialMsMax } from "./partial-bytes.js";
import type { CallFailure } from "./service.js";

/** What callers are told of a message above the bound. */
export function tooLarge(bytesMax: number): CallFailure {
  const message = `A message has more than ${bytesMax} bytes.`;
  return { grpcStatus: grpcStatuses.resourceExhausted, message };
}

/**
 * What callers are told of a compressed message: none is read, since Envoy's client compresses none
 * and what one becomes nobody could know before.
 *
 * Source: gRPC core, "Compression in gRPC": without an encoding it has nothing to be read by.
 *
 * @param encoding `grpc-encoding` of the call; undefined where it has none
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

/** What callers are told where there is no room for more of what has begun and not ended. */
export const noRoom: CallFailure = {
  grpcStatus: grpcStatuses.resourceExhausted,
  message: "Unfinished requests take too much memory.",
};

/** What callers are told who begin a request and do not end it. */
export const tooSlow: CallFailure = {
  grpcStatus: grpcStatuses.deadlineExceeded,
  message: `The request was not complete after ${partialMsMax / 1_000} s.`,
};

/** What callers are told of a second message where a method takes one. */
export const secondRequest: CallFailure = {
  grpcStatus: grpcStatuses.unimplemented,
  message: "This method accepts only one message.",
};

/** What callers are told of a message whose head is none. */
export const malformedMessage: CallFailure = {
  grpcStatus: grpcStatuses.internal,
  message: "The first byte of a message must be 0, or 1 if it is compressed.",
};
