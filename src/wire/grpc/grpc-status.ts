import { grpcStatuses } from "../../core/base/grpc-status.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { SentField } from "../base/http2.js";
import type { CallFailure } from "./service.js";

/** Headers of an answer that has a message. */
export const answerHead: readonly SentField[] = [
  [":status", String(httpStatuses.ok)],
  ["content-type", "application/grpc+proto"],
];

/** Trailers of an answer that has not failed. */
export const okTrailers: readonly SentField[] = [["grpc-status", String(grpcStatuses.ok)]];

/** Maximum characters of a failure's message that are sent: peers limit what they read. */
export const failureMessageMax = 1_024;

/** Returns the trailers of an answer that failed after it had begun. */
export function failureTrailers(failure: CallFailure): readonly SentField[] {
  return [
    ["grpc-status", String(failure.grpcStatus)],
    ["grpc-message", encodeGrpcMessage(failure.message)],
  ];
}

/** Tells callers how requests may be compressed: not at all. */
const acceptedEncodings: SentField = ["grpc-accept-encoding", "identity"];

/**
 * Returns the whole answer to a call that failed before anything was sent. It includes the accepted
 * encodings, for a caller that failed because of its own. Source: gRPC over HTTP2, "Trailers-Only".
 */
export function failureAnswer(failure: CallFailure): readonly SentField[] {
  return [...answerHead, acceptedEncodings, ...failureTrailers(failure)];
}

/**
 * Encodes a text for `grpc-message`: printable ASCII but for the percent sign stays, every other
 * byte of UTF-8 is %XX; `50 % ü` is `50 %25 %C3%BC`. Cut at `failureMessageMax` characters.
 *
 * Source: gRPC over HTTP2, "Status-Message".
 */
export function encodeGrpcMessage(text: string): string {
  const cut = text.length > failureMessageMax ? text.slice(0, failureMessageMax) : text;
  if (/^[ -$&-~]*$/.test(cut)) return cut;
  let encoded = "";
  for (const byte of new TextEncoder().encode(cut)) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += isPlain ? String.fromCharCode(byte) : `%${hex(byte)}`;
  }
  return encoded;
}

function hex(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(2, "0");
}
