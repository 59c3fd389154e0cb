import { WireType } from "@bufbuild/protobuf/wire";
import { textOfBytes } from "./byte-text.js";

/** Returns the tag of a field, which precedes its value: its number and wire type. */
export function fieldTag(field: number, type: WireType): number {
  return field * 8 + type;
}

/**
 * Default maximum number of fields that are read of one message. Each may cost a tenth of a
 * microsecond, and create an object. A request with 128 descriptors of 32 entries has 13,440, one
 * with 5,000 headers 15,000, and usage of 2,000 buckets 14,000.
 */
const fieldsMaxDefault = 16_384;

/** Default maximum length of a text, in bytes. Names are shorter. */
const textBytesMax = 4_096;

/** Maximum length of a varint, in bytes: 64 bits, seven per byte. */
const wholeBytesMax = 10;

/**
 * Reads the fields of a message from its bytes, and nested messages (parts) in place: without a
 * reader, a copy or a big integer for each. The caller reads the fields it needs, and skips others.
 *
 * Fields are counted as they are read. A message with more than `fieldsMax` fields, including those
 * of entered parts, is rejected at that field, before anything is created from the rest.
 *
 * `next` moves to the next field. The value of each field must be read, entered or skipped with
 * `skip` before `next` is called again.
 *
 * Source: protobuf.dev/programming-guides/encoding.
 */
export class FieldReader {
  readonly #bytes: Buffer;
  #at = 0;
  #end: number;
  #tag = 0;
  #partStart = 0;
  #fieldsLeft: number;
  #partsLeft: number;

  /** @param partsMax maximum number of parts that are entered */
  constructor(
    bytes: Uint8Array,
    fieldsMax = fieldsMaxDefault,
    partsMax = Number.POSITIVE_INFINITY,
  ) {
    this.#bytes = asBuffer(bytes);
    this.#end = bytes.length;
    this.#fieldsLeft = fieldsMax;
    this.#partsLeft = partsMax;
  }

  /** The tag of the field that `next` has found. */
  get tag(): number {
    return this.#tag;
  }

  /** Moves to the next field of the message or entered part. Returns false if there is none. */
  next(): boolean {
    if (this.#at >= this.#end) return false;
    this.#fieldsLeft -= 1;
    if (this.#fieldsLeft < 0) throw new TooManyFieldsError();
    this.#tag = this.whole();
    if (this.#tag < 8) throw malformed();
    return true;
  }

  /** The start of the part that `pass` has skipped last. */
  get partStart(): number {
    return this.#partStart;
  }

  /** The position of the next byte: right after `pass`, the end of the part. */
  get at(): number {
    return this.#at;
  }

  /** Skips the value of the field that `next` has found. */
  skip(): void {
    this.#skip(this.#tag & 7);
  }

  /** Enters the message that is this field's value. @returns the argument for `leave` */
  enter(): number {
    this.#partsLeft -= 1;
    if (this.#partsLeft < 0) throw new TooManyFieldsError();
    const outerEnd = this.#end;
    this.#end = this.#endOfPart();
    return outerEnd;
  }

  /** Continues after the part that was entered last, whether it was read to its end or not. */
  leave(outerEnd: number): void {
    this.#at = this.#end;
    this.#end = outerEnd;
  }

  /** Skips a part without reading it. */
  pass(): void {
    const end = this.#endOfPart();
    this.#partStart = this.#at;
    this.#at = end;
  }

  /**
   * Enters a part that was passed, of the message that was just read to its end.
   *
   * @returns the argument for `leave`, to continue in that message after the part
   */
  revisit(start: number, end: number): number {
    const outerEnd = this.#end;
    this.#at = start;
    this.#end = end;
    return outerEnd;
  }

  /** Reads an unsigned integer. Above 2^53, it is not exact. */
  whole(): number {
    const first = this.#bytes[this.#at];
    if (first === undefined || first > 127 || this.#at >= this.#end) return this.#longWhole();
    this.#at += 1;
    return first;
  }

  #longWhole(): number {
    const start = this.#at;
    this.#skipWhole();
    const bytes = this.#bytes;
    const end = this.#at;
    let value = 0;
    let scale = 1;
    for (let at = start; at < end; at += 1) {
      value += ((bytes[at] ?? 0) & 127) * scale;
      scale *= 128;
    }
    return value;
  }

  /** Skips an integer without arithmetic, which took most of the time. */
  #skipWhole(): void {
    const bytes = this.#bytes;
    const end = Math.min(this.#end, this.#at + wholeBytesMax);
    let at = this.#at;
    while (at < end && (bytes[at] ?? 0) > 127) at += 1;
    if (at >= end) throw malformed();
    this.#at = at + 1;
  }

  double(): number {
    const at = this.#at;
    this.#pass(8);
    return this.#bytes.readDoubleLE(at);
  }

  /**
   * Reads a text. Bytes that are not UTF-8 are kept, as described at `textOfBytes`.
   *
   * @param bytesMax bytes beyond this number are left out
   */
  text(bytesMax = textBytesMax): string {
    this.pass();
    const end = Math.min(this.#at, this.#partStart + bytesMax);
    return textOfBytes(this.#bytes, this.#partStart, end);
  }

  /** Returns the text of a part that was passed. */
  textAt(start: number, end: number): string {
    return textOfBytes(this.#bytes, start, end);
  }

  /** Returns what `read` creates from a field's bytes in place. */
  readPart<Made>(read: (bytes: Buffer, start: number, end: number) => Made): Made {
    this.pass();
    return read(this.#bytes, this.#partStart, this.#at);
  }

  /**
   * Returns what `read` creates from a field's bytes in place. If it returns undefined, the field
   * must still be read, entered or skipped.
   */
  tryPart<Made>(read: (bytes: Buffer, start: number, end: number) => Made | undefined) {
    const before = this.#at;
    const end = this.#endOfPart();
    const made = read(this.#bytes, this.#at, end);
    this.#at = made === undefined ? before : end;
    return made;
  }

  /** Reads a field's bytes, in place. */
  part(): Uint8Array {
    this.pass();
    return this.partAt(this.#partStart, this.#at);
  }

  /** Returns the bytes of a part that was passed, each as one character. */
  latin1At(start: number, end: number): string {
    return this.#bytes.toString("latin1", start, end);
  }

  /** Returns the bytes of a part that was passed, in place. */
  partAt(start: number, end: number): Uint8Array {
    return this.#bytes.subarray(start, end);
  }

  #endOfPart(): number {
    const end = this.whole() + this.#at;
    if (end > this.#end) throw malformed();
    return end;
  }

  #skip(type: WireType): void {
    if (type === WireType.Varint) this.#skipWhole();
    else if (type === WireType.Bit64) this.#pass(8);
    else if (type === WireType.LengthDelimited) this.#at = this.#endOfPart();
    else if (type === WireType.Bit32) this.#pass(4);
    // Groups are from protobuf's first years. No message of Envoy has one.
    else throw malformed();
  }

  #pass(byteCount: number): void {
    if (this.#at + byteCount > this.#end) throw malformed();
    this.#at += byteCount;
  }
}

/**
 * A text or bytes in a field that may be repeated. The last one counts, and only that one is
 * created, because creating it costs ten times as much as skipping it.
 */
export class LastPart {
  #start = 0;
  #end = 0;

  /** Skips the field that `next` has found, and remembers its position. */
  pass(reader: FieldReader): void {
    reader.pass();
    this.#start = reader.partStart;
    this.#end = reader.at;
  }

  /** Like `FieldReader.text`. Empty if there was no such field. */
  text(reader: FieldReader, bytesMax = textBytesMax): string {
    const end = Math.min(this.#end, this.#start + bytesMax);
    return end === this.#start ? "" : reader.textAt(this.#start, end);
  }

  /** Returns each byte as one character. Nothing is lost, whatever the bytes are. */
  latin1(reader: FieldReader): string {
    return this.#end === this.#start ? "" : reader.latin1At(this.#start, this.#end);
  }

  /** Returns the bytes, in place. */
  bytes(reader: FieldReader): Uint8Array {
    return this.#end === this.#start ? nothing : reader.partAt(this.#start, this.#end);
  }
}

const twoPartTags = {
  first: fieldTag(1, WireType.LengthDelimited),
  second: fieldTag(2, WireType.LengthDelimited),
} as const;

/** Passes the parts of a message with fields 1 and 2: an entry of a map, or an `Any`. */
export function passTwoParts(reader: FieldReader, first: LastPart, second: LastPart): void {
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === twoPartTags.first) first.pass(reader);
    else if (reader.tag === twoPartTags.second) second.pass(reader);
    else reader.skip();
  }
  reader.leave(outerEnd);
}

const nothing: Uint8Array = Buffer.alloc(0);

/**
 * Returns the maximum number of parts, each of which becomes an object, for a message of this many
 * bytes: 512, and one per `bytesPerPart`. Real parts are longer than that, whereas an empty part
 * turns two bytes into a hundred.
 */
export function leanPartsMax(byteCount: number, bytesPerPart = 16): number {
  return 512 + byteCount / bytesPerPart;
}

/** Thrown if a message has more fields than are read. */
export class TooManyFieldsError extends Error {
  override readonly name = "TooManyFieldsError";

  constructor() {
    super("the message has too many fields");
  }
}

/** Returns the same bytes as a Buffer. Bytes from transports already are one. */
export function asBuffer(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function malformed(): Error {
  return new Error("the bytes are not a message");
}
