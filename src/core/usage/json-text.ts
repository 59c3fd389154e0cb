/**
 * Decodes the content of a JSON string, between its quotes. Invalid UTF-8, and what is cut off at
 * the end, becomes U+FFFD. An escape that JSON does not have becomes its last character.
 *
 * Source: RFC 8259, section 7; RFC 3629, section 3.
 */
export function decodeJsonText(bytes: Uint8Array, from: number, to: number): string {
  let text = "";
  let i = from;
  while (i < to) {
    const byte = bytes[i] ?? 0;
    i += 1;
    if (byte === backslash) {
      const letter = bytes[i] ?? 0;
      i += 1;
      if (i > to) return `${text}\ufffd`;
      if (letter !== 0x75) text += escapes.get(letter) ?? String.fromCharCode(letter & 0x7f);
      else {
        const unit = hexOf(bytes, i, Math.min(i + 4, to));
        text += unit === undefined ? "\ufffd" : String.fromCharCode(unit);
        i += unit === undefined ? 0 : 4;
      }
    } else if (byte < 0x80) text += String.fromCharCode(byte);
    else {
      const length = sequenceLength(bytes, i - 1, to);
      text += length === 0 ? "\ufffd" : codePoint(bytes, i - 1, length);
      i += Math.max(0, length - 1);
    }
  }
  return text.toWellFormed();
}

const backslash = 0x5c;

/** Characters by the letter after the backslash. Other letters represent themselves. */
const escapes: ReadonlyMap<number, string> = new Map([
  [0x62, "\b"],
  [0x66, "\f"],
  [0x6e, "\n"],
  [0x72, "\r"],
  [0x74, "\t"],
]);

/** Reads four hexadecimal digits. */
function hexOf(bytes: Uint8Array, from: number, to: number): number | undefined {
  if (to - from < 4) return undefined;
  let value = 0;
  for (let i = from; i < to; i += 1) {
    const byte = bytes[i] ?? 0;
    const letter = byte | 0x20;
    if (byte >= 0x30 && byte <= 0x39) value = value * 16 + byte - 0x30;
    else if (letter >= 0x61 && letter <= 0x66) value = value * 16 + letter - 0x57;
    else return undefined;
  }
  return value;
}

/** Returns the bytes of the character that begins here, 2 to 4. 0 if there is none. */
function sequenceLength(bytes: Uint8Array, from: number, to: number): number {
  const lead = bytes[from] ?? 0;
  const length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (from + length > to) return 0;
  for (let i = from + 1; i < from + length; i += 1) {
    if (((bytes[i] ?? 0) & 0xc0) !== 0x80) return 0;
  }
  return length;
}

function codePoint(bytes: Uint8Array, from: number, length: number): string {
  let value = (bytes[from] ?? 0) & (0xff >> (length + 1));
  for (let i = from + 1; i < from + length; i += 1) value = (value << 6) | ((bytes[i] ?? 0) & 0x3f);
  const isOverlong = value < (length === 3 ? 0x800 : length === 4 ? 0x10000 : 0x80);
  const isNone = isOverlong || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff);
  return isNone ? "\ufffd" : String.fromCodePoint(value);
}
