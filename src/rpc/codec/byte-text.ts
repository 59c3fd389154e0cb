import { isUtf8 } from "node:buffer";

/**
 * The bytes of a proto3 `string` as text. Envoy copies callers' bytes into such fields, and those
 * need not be UTF-8: a byte that belongs to no character becomes half of one, U+DC00 and the byte,
 * which no UTF-8 gives. So every value can be told from every other, and none is an error.
 *
 * Such texts have no UTF-8 of their own (`isWellFormed()` is false): who writes them anywhere takes
 * a digest of them, or `toWellFormed()`.
 *
 * Source: the idea is PEP 383, "Non-decodable Bytes in System Character Interfaces".
 *
 * @param start the first byte
 * @param end the one behind the last, inside of `bytes`
 */
export function textOfBytes(bytes: Buffer, start: number, end: number): string {
  if (isAscii(bytes, start, end)) return bytes.toString("latin1", start, end);
  // To ask first costs a fortieth of what it costs to read bytes as what they are not.
  if (isUtf8(bytes.subarray(start, end))) return bytes.toString("utf8", start, end);
  return escapedText(bytes, start, end);
}

function isAscii(bytes: Buffer, start: number, end: number): boolean {
  let seen = 0;
  for (let i = start; i < end; i += 1) seen |= bytes[i] ?? 0;
  return seen < 128;
}

/** Half of a character that stands for a byte from 0x80 to 0xff. */
const escapeBase = 0xdc00;

function escapedText(bytes: Buffer, start: number, end: number): string {
  const units = new Uint16Array(end - start);
  let unitCount = 0;
  for (let at = start; at < end; ) {
    const length = sequenceLength(bytes, at, end);
    if (length === 0) {
      units[unitCount] = escapeBase + (bytes[at] ?? 0);
      unitCount += 1;
      at += 1;
      continue;
    }
    const codePoint = codePointAt(bytes, at, length);
    if (codePoint > 0xffff) {
      units[unitCount] = 0xd800 + ((codePoint - 0x10000) >> 10);
      units[unitCount + 1] = 0xdc00 + ((codePoint - 0x10000) & 0x3ff);
      unitCount += 2;
    } else {
      units[unitCount] = codePoint;
      unitCount += 1;
    }
    at += length;
  }
  return Buffer.from(units.buffer, 0, 2 * unitCount).toString("utf16le");
}

/** The least second byte of sequences whose first byte allows not all; 0x80 of all others. */
const secondMin: ReadonlyMap<number, number> = new Map([
  [0xe0, 0xa0],
  [0xf0, 0x90],
]);

/** The greatest second byte of such sequences; 0xbf of all others. */
const secondMax: ReadonlyMap<number, number> = new Map([
  [0xed, 0x9f],
  [0xf4, 0x8f],
]);

/**
 * How many bytes the character that begins here has; 0 where none does.
 *
 * Source: Unicode 16, table 3-7, "Well-Formed UTF-8 Byte Sequences".
 */
function sequenceLength(bytes: Buffer, at: number, end: number): number {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (at + length > end) return 0;
  const second = bytes[at + 1] ?? 0;
  if (second < (secondMin.get(first) ?? 0x80) || second > (secondMax.get(first) ?? 0xbf)) return 0;
  for (let i = at + 2; i < at + length; i += 1) {
    if (((bytes[i] ?? 0) & 0xc0) !== 0x80) return 0;
  }
  return length;
}

function codePointAt(bytes: Buffer, at: number, length: number): number {
  const first = bytes[at] ?? 0;
  if (length === 1) return first;
  let codePoint = first & (0x7f >> length);
  for (let i = at + 1; i < at + length; i += 1)
    codePoint = (codePoint << 6) | ((bytes[i] ?? 0) & 0x3f);
  return codePoint;
}
