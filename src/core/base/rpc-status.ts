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

/** The most bytes of a `google.rpc.Status` that are read: what metadata may hold by default. */
export const rpcStatusBytesMax = 8_192;

/**
 * The delay of the `RetryInfo` in a `google.rpc.Status`, in milliseconds from 0, rounded up; the
 * first of several. Undefined where there is none, where it is below 0, and for bytes that are no
 * status.
 *
 * @param bytes what the trailer `grpc-status-details-bin` carries
 *
 * Source: as of `encodeRetryStatus`; Duration.nanos = 2.
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
  // Negative ones are large: two's complement of 64 bits.
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

/** The last field of bytes with a number: it is the one that counts. */
function lastPart(bytes: Uint8Array | undefined, wanted: number): Uint8Array | undefined {
  const fields = bytes && fieldsOf(bytes);
  return fields?.findLast(({ field, part }) => field === wanted && part !== undefined)?.part;
}

interface WireField {
  readonly field: number;
  /** A number without a sign; digits beyond 2^53 are lost. */
  readonly whole: number;
  /** In place; undefined where it is no field of bytes. */
  readonly part: Uint8Array | undefined;
}

/** The fields of a message, without those of fixed length; undefined for what is none. */
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

/** Bytes of the wire types of fixed length: I64 and I32. */
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
