import { WireType } from "@bufbuild/protobuf/wire";
import { textOfBytes } from "./byte-text.js";

/** A field's number and type as they stand before its value. */
export function fieldTag(field: number, type: WireType): number {
  return field * 8 + type;
}

/**
 * The most fields that are read of one message where nothing else is said: each may cost a tenth of
 * a microsecond, and make an object. A request of 128 descriptors of 32 entries has 13,440, one of
 * 5,000 headers 15,000, and usage of 2,000 buckets 14,000.
 */
const fieldsMaxDefault = 16_384;

/** The most bytes of a text where nothing else is said: names are shorter. */
const textBytesMax = 4_096;

/** Bytes of the longest whole number: 64 bits, of which each has seven. */
const wholeBytesMax = 10;

/**
 * Fields of a message from its bytes, parts of it in place: no reader, no copy and no big integer
 * for each. Whoever reads says which fields it wants; all others are passed over.
 *
 * Fields are counted as they are read: a message of more than `fieldsMax`, with those of its parts
 * that were entered, is refused there, before anything is made of the rest.
 *
 * `next` goes from one field to the next, and each value is read, entered or passed over by `skip`
 * before the next `next`.
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

  /** @param partsMax the most parts that are entered */
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

  /** Of the field that `next` has found. */
  get tag(): number {
    return this.#tag;
  }

  /** Whether there is one more field, in the message or in the part that was entered. */
  next(): boolean {
    if (this.#at >= this.#end) return false;
    this.#fieldsLeft -= 1;
    if (this.#fieldsLeft < 0) throw new TooManyFieldsError();
    this.#tag = this.whole();
    if (this.#tag < 8) throw malformed();
    return true;
  }

  /** Where the part begins that `pass` went over last. */
  get partStart(): number {
    return this.#partStart;
  }

  /** Where the next byte is: behind the part, right after `pass`. */
  get at(): number {
    return this.#at;
  }

  /** Passes over the value of the field that `next` has found. */
  skip(): void {
    this.#skip(this.#tag & 7);
  }

  /** Goes into the message that is this field's value. @returns what `leave` is to be given */
  enter(): number {
    this.#partsLeft -= 1;
    if (this.#partsLeft < 0) throw new TooManyFieldsError();
    const outerEnd = this.#end;
    this.#end = this.#endOfPart();
    return outerEnd;
  }

  /** Goes on behind the part that was entered last, read to its end or not. */
  leave(outerEnd: number): void {
    this.#at = this.#end;
    this.#end = outerEnd;
  }

  /** Goes over a part without a look into it. */
  pass(): void {
    const end = this.#endOfPart();
    this.#partStart = this.#at;
    this.#at = end;
  }

  /**
   * Goes into a part that was passed, of the message that was read to its end just now.
   *
   * @returns what `leave` is to be given, to be at the end of that message again
   */
  revisit(start: number, end: number): number {
    const outerEnd = this.#end;
    this.#at = start;
    this.#end = end;
    return outerEnd;
  }

  /** A whole number without a sign; digits beyond 2^53 are lost. */
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

  /** By bytes alone: what nobody reads needs no arithmetic, which took most of the time. */
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
   * A text; what is not UTF-8 in it is kept, as `textOfBytes` says.
   *
   * @param bytesMax what is behind that many bytes is left out
   */
  text(bytesMax = textBytesMax): string {
    this.pass();
    const end = Math.min(this.#at, this.#partStart + bytesMax);
    return textOfBytes(this.#bytes, this.#partStart, end);
  }

  /** The text of a part that was passed. */
  textAt(start: number, end: number): string {
    return textOfBytes(this.#bytes, start, end);
  }

  /** What is made of a field's bytes where they stand. */
  readPart<Made>(read: (bytes: Buffer, start: number, end: number) => Made): Made {
    this.pass();
    return read(this.#bytes, this.#partStart, this.#at);
  }

  /**
   * What is made of a field's bytes where they stand; undefined: nothing is, and the field is still
   * to be read, entered or passed over.
   */
  tryPart<Made>(read: (bytes: Buffer, start: number, end: number) => Made | undefined) {
    const before = this.#at;
    const end = this.#endOfPart();
    const made = read(this.#bytes, this.#at, end);
    this.#at = made === undefined ? before : end;
    return made;
  }

  /** A field's bytes, in place. */
  part(): Uint8Array {
    this.pass();
    return this.partAt(this.#partStart, this.#at);
  }

  /** The bytes of a part that was passed, each as one character. */
  latin1At(start: number, end: number): string {
    return this.#bytes.toString("latin1", start, end);
  }

  /** The bytes of a part that was passed, in place. */
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
    // Groups are of protobuf's first years: no message of Envoy has one.
    else throw malformed();
  }

  #pass(byteCount: number): void {
    if (this.#at + byteCount > this.#end) throw malformed();
    this.#at += byteCount;
  }
}

/**
 * A text or bytes in a field that may come again, of which the last one counts: it alone is made,
 * which costs ten times as much as to pass over it.
 */
export class LastPart {
  #start = 0;
  #end = 0;

  /** Passes over the field that `next` has found. */
  pass(reader: FieldReader): void {
    reader.pass();
    this.#start = reader.partStart;
    this.#end = reader.at;
  }

  /** As `FieldReader.text`; empty where there was none. */
  text(reader: FieldReader, bytesMax = textBytesMax): string {
    const end = Math.min(this.#end, this.#start + bytesMax);
    return end === this.#start ? "" : reader.textAt(this.#start, end);
  }

  /** Each byte as one character: nothing is lost, whatever the bytes are. */
  latin1(reader: FieldReader): string {
    return this.#end === this.#start ? "" : reader.latin1At(this.#start, this.#end);
  }

  /** In place. */
  bytes(reader: FieldReader): Uint8Array {
    return this.#end === this.#start ? nothing : reader.partAt(this.#start, this.#end);
  }
}

const twoPartTags = {
  first: fieldTag(1, WireType.LengthDelimited),
  second: fieldTag(2, WireType.LengthDelimited),
} as const;

/** Passes over a message of two parts, fields 1 and 2: an entry of a map, or an `Any`. */
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
 * The most parts of a message of that many bytes of which an object each is made: 512, and one for
 * every so many bytes. Those that anybody sends have more than that, and empty ones are a hundred
 * bytes made of two.
 */
export function leanPartsMax(byteCount: number, bytesPerPart = 16): number {
  return 512 + byteCount / bytesPerPart;
}

/** A message has more fields than are read. */
export class TooManyFieldsError extends Error {
  override readonly name = "TooManyFieldsError";

  constructor() {
    super("the message has too many fields");
  }
}

/** The same bytes as a Buffer; what transports hand over is one already. */
export function asBuffer(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function malformed(): Error {
  return new Error("the bytes are not a message");
}
