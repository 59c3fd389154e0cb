import { grpcStatuses } from "../../core/base/grpc-status.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { SentField } from "../base/http2.js";
import type { CallFailure } from "./service.js";

/** How an answer begins that has a message. */
export const answerHead: readonly SentField[] = [
  [":status", String(httpStatuses.ok)],
  ["content-type", "application/grpc+proto"],
];

/** How an answer ends that has not failed. */
export const okTrailers: readonly SentField[] = [["grpc-status", String(grpcStatuses.ok)]];

/** The most characters of a failure's message that are sent: peers bound what they read. */
export const failureMessageMax = 1_024;

/** How an answer ends that has begun and failed then. */
export function failureTrailers(failure: CallFailure): readonly SentField[] {
  return [
    ["grpc-status", String(failure.grpcStatus)],
    ["grpc-message", encodeGrpcMessage(failure.message)],
  ];
}

/** The field that says what requests may be compressed with, and what it says: with nothing. */
const acceptedEncodings: SentField = ["grpc-accept-encoding", "identity"];

/**
 * The whole answer to a call that failed before anything was sent; it names the encodings too, for
 * a caller that failed for its own. Source: gRPC over HTTP2, "Trailers-Only".
 */
export function failureAnswer(failure: CallFailure): readonly SentField[] {
  return [...answerHead, acceptedEncodings, ...failureTrailers(failure)];
}

/**
 * A text as `grpc-message` has it: printable ASCII but for the percent sign, and every other byte
 * of UTF-8 as %XX; `50 % ü` is `50 %25 %C3%BC`. Cut after `failureMessageMax` characters.
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
