/**
 * What a field of a message holds: a scalar, or the shape of a message. Text has to be UTF-8, as
 * proto3 says.
 */
export type FieldKind = "varint" | "double" | "text" | "bytes" | MessageShape;

/** The fields of a message by number (below 16); undefined for those that it does not have. */
export type MessageShape = (fieldNumber: number) => FieldKind | undefined;

/** Messages within messages beyond this are left to the general decoder. */
export const skimDepthMax = 32;

/**
 * A walk over a protobuf message, forward only. It takes what every encoder writes; what it does
 * not expect (wrong wire types, groups, anything past its end, texts that are not UTF-8) makes it
 * lost, and then nothing it said counts: the general decoder has to judge the message.
 *
 * Every reading method takes the end of the message that it reads in, and stays before it.
 *
 * Source: protobuf.dev/programming-guides/encoding.
 */
export class MessageScanner {
  readonly bytes: Buffer;
  /** Where the next byte is. */
  at = 0;
  isLost = false;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** Whether the message that ends there has another field. */
  hasMore(end: number): boolean {
    return !this.isLost && this.at < end;
  }

  /** A field's number and wire type, as one number: below 128 for field numbers below 16. */
  tag(end: number): number {
    const tag = this.small(end);
    // Field numbers below 16 fit in one byte; one that takes more is written as nobody does.
    if (tag < 8 || (tag < 128 && (this.bytes[this.at - 1] ?? 0) !== tag)) this.isLost = true;
    return tag;
  }

  /** A number below 2^28, which is as much as a length or a tag takes. */
  small(end: number): number {
    let value = 0;
    for (let shift = 0; shift < 28 && this.at < end; shift += 7) {
      const byte = this.bytes[this.at] ?? 0;
      this.at += 1;
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    this.isLost = true;
    return 0;
  }

  /** Steps into a field with a length, and answers where it ends. */
  enter(end: number): number {
    const length = this.small(end);
    const innerEnd = this.at + length;
    if (innerEnd <= end) return innerEnd;
    this.isLost = true;
    return this.at;
  }

  /** A bool in one byte. */
  bool(end: number): boolean {
    const byte = this.at < end ? (this.bytes[this.at] ?? 0) : 128;
    if (byte > 127) this.isLost = true;
    this.at += 1;
    return byte !== 0;
  }

  double(end: number): number {
    const start = this.at;
    this.at += 8;
    if (this.at <= end) return this.bytes.readDoubleLE(start);
    this.isLost = true;
    return 0;
  }

  /** A text with its length. */
  text(end: number): string {
    const textEnd = this.enter(end);
    if (this.isLost) return "";
    const text = decodeText(this.bytes, this.at, textEnd);
    this.at = textEnd;
    if (text === undefined) this.isLost = true;
    return text ?? "";
  }

  /** Steps over the text between here and there, having seen that it is one. */
  passText(textEnd: number): void {
    if (this.isLost) return;
    const start = this.at;
    this.at = textEnd;
    if (isAscii(this.bytes, start, textEnd)) return;
    if (decodeUtf8(this.bytes, start, textEnd) === undefined) this.isLost = true;
  }

  /** Steps over a field of a message, whose tag was read, having seen that it is well-formed. */
  skipField(tag: number, shape: MessageShape, end: number): void {
    this.#field(tag, shape, { end, depth: 1 });
  }

  /** Steps over the fields of a message up to its end, having seen that they are well-formed. */
  skim(shape: MessageShape, end: number): void {
    this.#skim(shape, { end, depth: 1 });
  }

  #skim(shape: MessageShape, within: Within): void {
    if (within.depth > skimDepthMax) this.isLost = true;
    while (this.hasMore(within.end)) this.#field(this.tag(within.end), shape, within);
  }

  #field(tag: number, shape: MessageShape, within: Within): void {
    if (this.isLost) return;
    const { end } = within;
    const wireType = tag & 7;
    const kind = tag < 128 ? shape(tag >>> 3) : undefined;
    if (kind === undefined) this.#unknown(wireType, end);
    else if (wireType !== wireTypeOf(kind)) this.isLost = true;
    else if (kind === "varint") this.#skipVarint(end);
    else if (kind === "double") this.#skipFixed(8, end);
    else if (kind === "text") this.passText(this.enter(end));
    else if (kind === "bytes") this.at = this.enter(end);
    else this.#skim(kind, { end: this.enter(end), depth: within.depth + 1 });
  }

  #unknown(wireType: number, end: number): void {
    if (wireType === wireTypes.varint) this.#skipVarint(end);
    else if (wireType === wireTypes.fixed64) this.#skipFixed(8, end);
    else if (wireType === wireTypes.lengthDelimited) this.at = this.enter(end);
    else if (wireType === wireTypes.fixed32) this.#skipFixed(4, end);
    else this.isLost = true;
  }

  #skipFixed(length: number, end: number): void {
    this.at += length;
    if (this.at > end) this.isLost = true;
  }

  #skipVarint(end: number): void {
    const last = Math.min(end, this.at + varintBytesMax);
    while (this.at < last) {
      const byte = this.bytes[this.at] ?? 0;
      this.at += 1;
      if (byte < 128) return;
    }
    this.isLost = true;
  }
}

/** Where a message ends, and how many messages it is in. */
interface Within {
  readonly end: number;
  readonly depth: number;
}

/** Source: protobuf.dev/programming-guides/encoding, "Message Structure". */
const wireTypes = { varint: 0, fixed64: 1, lengthDelimited: 2, fixed32: 5 } as const;

/** 64 bits, seven in a byte. */
const varintBytesMax = 10;

function wireTypeOf(kind: FieldKind): number {
  if (kind === "varint") return wireTypes.varint;
  if (kind === "double") return wireTypes.fixed64;
  return wireTypes.lengthDelimited;
}

function isAscii(bytes: Buffer, start: number, end: number): boolean {
  let seen = 0;
  for (let i = start; i < end; i += 1) seen |= bytes[i] ?? 0;
  return seen < 128;
}

/** The text between two places; undefined where it is not UTF-8. */
export function decodeText(bytes: Buffer, start: number, end: number): string | undefined {
  if (!isAscii(bytes, start, end)) return decodeUtf8(bytes, start, end);
  return bytes.toString("latin1", start, end);
}

function decodeUtf8(bytes: Buffer, start: number, end: number): string | undefined {
  const text = bytes.toString("utf8", start, end);
  // What is not UTF-8 becomes U+FFFD, which may also have been sent: then it encodes back.
  if (!text.includes("\ufffd")) return text;
  return Buffer.from(text, "utf8").equals(bytes.subarray(start, end)) ? text : undefined;
}
