import { gunzip } from "node:zlib";
import { acceptedEncodings, protocolStatuses } from "./grpc-status.js";
import type { CallFailure } from "./service.js";

/** The most bytes that one of a compressed message may be; texts of requests have a tenth. */
const compressedRatioMax = 100;

/** A message as it was before compression, or why there is none. */
export type Decompressed =
  | { readonly kind: "message"; readonly bytes: Uint8Array }
  | { readonly kind: "failure"; readonly failure: CallFailure };

/** A message before it is decompressed. */
interface CompressedMessage {
  readonly encoding: string | undefined;
  readonly bytes: Uint8Array;
  readonly bytesMax: number;
}

/**
 * Decompresses one message, beside the event loop. What is above `bytesMax`, or more than
 * `compressedRatioMax` times what came, is not made: a bomb costs little more than its bytes.
 *
 * @param encoding `grpc-encoding` of the call; undefined where it has none
 * @param bytes must hold until `done`
 * @param bytesMax the largest message
 */
export function decompress(
  { encoding, bytes, bytesMax }: CompressedMessage,
  done: (result: Decompressed) => void,
): void {
  const fail = (grpcStatus: number, message: string): void =>
    done({ kind: "failure", failure: { grpcStatus, message } });
  if (encoding === undefined || encoding === "identity") {
    // Source: gRPC core, "Compression in gRPC": such a message has nothing to be read by.
    fail(protocolStatuses.internal, "A message is compressed, but the call names no encoding.");
    return;
  }
  if (encoding !== "gzip") {
    fail(protocolStatuses.unimplemented, `Encodings of messages are ${acceptedEncodings}.`);
    return;
  }
  const maxOutputLength = Math.min(bytesMax, compressedRatioMax * bytes.length);
  gunzip(bytes, { maxOutputLength }, (error, message) => {
    if (!error) done({ kind: "message", bytes: message });
    else if (error.name === "RangeError") done({ kind: "failure", failure: tooLarge(bytesMax) });
    else fail(protocolStatuses.internal, "A message is not what its encoding says.");
  });
}

/** What callers are told of a message above the bound. */
export function tooLarge(bytesMax: number): CallFailure {
  const message = `A message has more than ${bytesMax} bytes.`;
  return { grpcStatus: protocolStatuses.resourceExhausted, message };
}
