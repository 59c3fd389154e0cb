/** The parts of a refusal for a gRPC client. */
interface RetryStatus {
  /** A gRPC status, 1 to 16. */
  readonly code: number;
  /** Printable ASCII. */
  readonly message: string;
  /** Time until a retry makes sense, in whole seconds, at least 0. */
  readonly retrySeconds: number;
}

const retryInfoType = "type.googleapis.com/google.rpc.RetryInfo";

/**
 * Encodes a `google.rpc.Status` with a `RetryInfo` among its details, as protobuf bytes: the value
 * of the trailer `grpc-status-details-bin`, which gRPC clients can read.
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

/** Maximum size of a `google.rpc.Status` that is read, in bytes: the default limit for metadata. */
export const rpcStatusBytesMax = 8_192;

/**
 * Returns the delay of the first `RetryInfo` in a `google.rpc.Status`, in milliseconds, rounded up,
 * at least 0. Undefined if there is none, if it is negative, or if the bytes are not a status.
 *
 * @param bytes the value of the trailer `grpc-status-details-bin`
 *
 * Source: as for `encodeRetryStatus`; Duration.nanos = 2.
 */
export function decodeRetryDelayMs(bytes: Uint8Array): number | undefined {
  if (bytes.length > rpcStatusBytesMax) return undefined;
  const detail = fieldsOf(bytes)?.find(
    ({ field, part }) => field === 3 && part !== undefined && isRetryInfo(part),
  );
  const duration = lastPart(lastPart(detail?.part, 2), 1);
  const delay = duration && fieldsOf(duration);
  if (delay === undefined) return undefined;
  const numberOf = (wanted: number): number =>
    delay.findLast(({ field, part }) => field === wanted && part === undefined)?.whole ?? 0;
  const [seconds, nanos] = [numberOf(1), numberOf(2)];
  // Negative values appear as large ones: two's complement of 64 bits.
  if (seconds > durationSecondsMax || nanos >= 1e9) return undefined;
  return seconds * 1_000 + Math.ceil(nanos / 1e6);
}

/** Source: google/protobuf/duration.proto: 10,000 years. */
const durationSecondsMax = 315_576_000_000;

function isRetryInfo(detail: Uint8Array): boolean {
  const typeUrl = lastPart(detail, 1);
  if (typeUrl?.length !== retryInfoType.length) return false;
  return typeUrl.every((byte, i) => byte === retryInfoType.charCodeAt(i));
}

/** Returns the last field with this number and the wire type of bytes. Earlier ones are ignored. */
function lastPart(bytes: Uint8Array | undefined, wanted: number): Uint8Array | undefined {
  const fields = bytes && fieldsOf(bytes);
  return fields?.findLast(({ field, part }) => field === wanted && part !== undefined)?.part;
}

interface WireField {
  readonly field: number;
  /** An unsigned integer. Inexact above 2^53. */
  readonly whole: number;
  /** A view of the message. Undefined if the field does not contain bytes. */
  readonly part: Uint8Array | undefined;
}

/** Returns the fields of a message except those of fixed length. Undefined for invalid bytes. */
function fieldsOf(bytes: Uint8Array): readonly WireField[] | undefined {
  const fields: WireField[] = [];
  let at = 0;
  const readWhole = (): number => {
    let value = 0;
    for (let scale = 1; scale < 2 ** 70; scale *= 0x80) {
      const byte = bytes[at];
      if (byte === undefined) return Number.NaN;
      at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    return Number.NaN;
  };
  while (at < bytes.length) {
    const key = readWhole();
    const [field, wireType] = [Math.floor(key / 8), key % 8];
    if (wireType === varintType) {
      const whole = readWhole();
      if (Number.isNaN(whole)) return undefined;
      fields.push({ field, whole, part: undefined });
      continue;
    }
    const length = wireType === bytesType ? readWhole() : fixedLengths.get(wireType);
    if (length === undefined || !(at + length <= bytes.length)) return undefined;
    const part = bytes.subarray(at, at + length);
    at += length;
    if (wireType === bytesType) fields.push({ field, whole: 0, part });
  }
  return fields;
}

/** Sizes of the wire types of fixed length, in bytes: I64 and I32. */
const fixedLengths: ReadonlyMap<number, number> = new Map([
  [1, 8],
  [5, 4],
]);

/** Source: protobuf encoding, "Message Structure". */
const varintType = 0;
const bytesType = 2;

function tag(field: number, wireType: number): readonly number[] {
  return varint(field * 8 + wireType);
}

/** Encodes an integer from 0, below 2^53. */
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

/** Encodes a field of bytes: a text or a message. */
function embedded(field: number, bytes: readonly number[]): readonly number[] {
  return [...tag(field, bytesType), ...varint(bytes.length), ...bytes];
}

function ascii(text: string): readonly number[] {
  return Array.from(text, (character) => character.charCodeAt(0));
}
