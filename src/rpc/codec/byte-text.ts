import { isUtf8 } from "node:buffer";

/**
 * Returns the bytes of a proto3 `string` as text. Envoy copies callers' bytes into such fields, and
 * these may not be UTF-8. A byte that belongs to no character becomes a lone surrogate, U+DC00 plus
 * the byte, which UTF-8 never decodes to. So all values stay distinct, and none is an error.
 *
 * Such texts cannot be encoded as UTF-8 (`isWellFormed()` is false). Code that writes them uses a
 * digest of them, or `toWellFormed()`.
 *
 * Source: the idea is PEP 383, "Non-decodable Bytes in System Character Interfaces".
 *
 * @param start the first byte
 * @param end the position after the last byte, within `bytes`
 */
export function textOfBytes(bytes: Buffer, start: number, end: number): string {
  if (isAscii(bytes, start, end)) return bytes.toString("latin1", start, end);
  // This check costs a fortieth of decoding bytes that are not UTF-8.
  if (isUtf8(bytes.subarray(start, end))) return bytes.toString("utf8", start, end);
  return escapedText(bytes, start, end);
}

function isAscii(bytes: Buffer, start: number, end: number): boolean {
  let seen = 0;
  for (let i = start; i < end; i += 1) seen |= bytes[i] ?? 0;
  return seen < 128;
}

/** The lone surrogate for a byte from 0x80 to 0xff is the sum of this and the byte. */
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

/** Minimum second byte after first bytes that do not allow all. 0x80 after all others. */
const secondMin: ReadonlyMap<number, number> = new Map([
  [0xe0, 0xa0],
  [0xf0, 0x90],
]);

/** Maximum second byte after such first bytes. 0xbf after all others. */
const secondMax: ReadonlyMap<number, number> = new Map([
  [0xed, 0x9f],
  [0xf4, 0x8f],
]);

/**
 * Returns the number of bytes of the character at this position. 0 if none starts here.
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
