/** Maximum size of a command, in bytes: names and values of callers are far shorter. */
export const commandBytesMax = 16_384;

/** Maximum number of parts of a command, including its name. */
export const commandPartsMax = 64;

/** Result of reading the start of received bytes. */
export type ReadCommand =
  /** The parts are views of the bytes. None: an empty array, which requests nothing. */
  | { readonly kind: "command"; readonly parts: readonly Buffer[]; readonly end: number }
  /** More bytes must come. */
  | { readonly kind: "partial" }
  /** Nothing after it can be read. The reason contains nothing of what was sent. */
  | { readonly kind: "broken"; readonly reason: string };

/**
 * Reads a command at an offset: an array of bulk strings, as clients send them. Inline commands are
 * refused, so that a browser or an HTTP client cannot be made to send any. Lengths are compared
 * with their limits before anything is waited for.
 *
 * Source: https://redis.io/docs/latest/develop/reference/protocol-spec, "Sending commands".
 */
export function readCommand(bytes: Buffer, start: number): ReadCommand {
  const count = readLength(bytes, start, { sign: arraySign, max: commandPartsMax });
  if (count.kind !== "length") return count;
  const parts: Buffer[] = [];
  let at = count.end;
  while (parts.length < count.length) {
    const max = commandBytesMax - (at - start);
    const size = readLength(bytes, at, { sign: bulkSign, max });
    if (size.kind !== "length") return size;
    const end = size.end + size.length;
    if (bytes.length < end + 2) return partial;
    if (bytes[end] !== carriageReturn || bytes[end + 1] !== lineFeed) return broken(unendedBulk);
    parts.push(bytes.subarray(size.end, end));
    at = end + 2;
  }
  return { kind: "command", parts, end: at };
}

const arraySign = 0x2a;
const bulkSign = 0x24;
const carriageReturn = 0x0d;
const lineFeed = 0x0a;

/** Maximum digits of a length; enough for every limit. */
const digitsMax = 10;

const partial = { kind: "partial" } as const;
const unendedBulk = "a bulk string does not end after its length";

type ReadLength =
  | { readonly kind: "length"; readonly length: number; readonly end: number }
  | Exclude<ReadCommand, { kind: "command" }>;

/** Reads `*3\r\n` or `$5\r\n`. */
function readLength(
  bytes: Buffer,
  start: number,
  { sign, max }: { readonly sign: number; readonly max: number },
): ReadLength {
  const what = sign === arraySign ? "an array" : "a bulk string";
  const first = bytes[start];
  if (first === undefined) return partial;
  if (first !== sign) return broken(`expected ${what}`);
  let length = 0;
  let at = start + 1;
  for (let byte = bytes[at]; byte !== carriageReturn; byte = bytes[at]) {
    if (byte === undefined) return partial;
    const digit = byte - 0x30;
    if (digit < 0 || digit > 9 || at - start > digitsMax) return broken(`the length of ${what}`);
    length = 10 * length + digit;
    at += 1;
  }
  if (length > max) return broken(`${what} is too long`);
  if (bytes[at + 1] === undefined) return partial;
  if (at === start + 1 || bytes[at + 1] !== lineFeed) return broken(`the length of ${what}`);
  return { kind: "length", length, end: at + 2 };
}

function broken(reason: string): ReadCommand & { readonly kind: "broken" } {
  return { kind: "broken", reason };
}
