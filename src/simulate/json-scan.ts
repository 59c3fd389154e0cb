import type { LogLine } from "./log-line.js";

/** ASCII, as the bytes of JSON are compared with it. */
export const [quote, openBrace, closeBrace, comma, colon] = [0x22, 0x7b, 0x7d, 0x2c, 0x3a];
const [blank, backslash, minus, point] = [0x20, 0x5c, 0x2d, 0x2e];
const [zero, nine] = [0x30, 0x39];
const words: readonly Uint8Array[] = ["null", "true", "false"].map((word) => Buffer.from(word));

/** Behind the blanks at a place. */
export function blanksEnd({ bytes, end }: LogLine, start: number): number {
  let at = start;
  while (at < end && bytes[at] === blank) at += 1;
  return at;
}

/** Where the quote is that ends a text; -1: nowhere, or an escape comes before it. */
export function plainTextEnd({ bytes, end }: LogLine, start: number): number {
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) return at;
    if (byte === backslash || byte < blank) return -1;
  }
  return -1;
}

/** Behind a number up to its exponent, or a word; -1: there is none. */
export function plainWordEnd(line: LogLine, start: number): number {
  const { bytes, end } = line;
  const first = bytes[start] ?? 0;
  if (start < end && (first === minus || isDigit(first))) return plainNumberEnd(line, start);
  for (const word of words) {
    if (start + word.length <= end && word.every((byte, i) => bytes[start + i] === byte)) {
      return start + word.length;
    }
  }
  return -1;
}

/** Behind the digits of a number and of its fraction; -1: it is none. */
function plainNumberEnd(line: LogLine, start: number): number {
  const { bytes, end } = line;
  const whole = bytes[start] === minus ? start + 1 : start;
  let at = digitsEnd(line, whole);
  // Of several digits the first is no zero.
  if (at === whole || (at > whole + 1 && bytes[whole] === zero)) return -1;
  if (at < end && bytes[at] === point) {
    const fraction = at + 1;
    at = digitsEnd(line, fraction);
    if (at === fraction) return -1;
  }
  return at;
}

function digitsEnd({ bytes, end }: LogLine, start: number): number {
  let at = start;
  while (at < end && isDigit(bytes[at] ?? 0)) at += 1;
  return at;
}

function isDigit(byte: number): boolean {
  return byte >= zero && byte <= nine;
}
