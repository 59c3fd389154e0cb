/** What a gRPC client is told of a refusal. */
interface RetryStatus {
  /** A gRPC status, 1 to 16. */
  readonly code: number;
  /** Printable ASCII. */
  readonly message: string;
  /** When to try again, in whole seconds from 0. */
  readonly retrySeconds: number;
}

const retryInfoType = "type.googleapis.com/google.rpc.RetryInfo";

/**
 * A `google.rpc.Status` with a `RetryInfo` among its details, as protobuf bytes: what the trailer
 * `grpc-status-details-bin` carries, and what gRPC clients know how to read.
 *
 * Source: google/rpc/status.proto (code = 1, message = 2, details = 3),
 * google/rpc/error_details.proto (RetryInfo.retry_delay = 1), google/protobuf/any.proto (type_url
 * = 1, value = 2) and google/protobuf/duration.proto (seconds = 1).
 */
export function encodeRetryStatus({ code, message, retrySeconds }: RetryStatus): Uint8Array {
  const delay = [...tag(1, varintType), ...varint(retrySeconds)];
  const retryInfo = embedded(1, delay);
  const detail = [...embedded(1, ascii(retryInfoType)), ...embedded(2, retryInfo)];
  return Uint8Array.from([
    ...tag(1, varintType),
    ...varint(code),
    ...embedded(2, ascii(message)),
    ...embedded(3, detail),
  ]);
}

/** Source: protobuf encoding, "Message Structure". */
const varintType = 0;
const bytesType = 2;

function tag(field: number, wireType: number): readonly number[] {
  return varint(field * 8 + wireType);
}

/** A whole number from 0, below 2^53. */
function varint(value: number): readonly number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) + 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return bytes;
}

/** A field of bytes: a text or a message. */
function embedded(field: number, bytes: readonly number[]): readonly number[] {
  return [...tag(field, bytesType), ...varint(bytes.length), ...bytes];
}

function ascii(text: string): readonly number[] {
  return Array.from(text, (character) => character.charCodeAt(0));
}
