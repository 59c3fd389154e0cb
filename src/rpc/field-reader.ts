import { WireType } from "@bufbuild/protobuf/wire";

/** A field's number and type as they stand before its value. */
export function fieldTag(field: number, type: WireType): number {
  return field * 8 + type;
}

/**
 * Fields of a message from its bytes, parts of it in place: no reader, no copy and no big integer
 * for each. Whoever reads says which fields it wants; all others are passed over.
 *
 * `next` goes from one field to the next, and each value is read, entered or passed over by `skip`
 * before the next `next`.
 *
 * Source: protobuf.dev/programming-guides/encoding.
 */
export class FieldReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  /** The same bytes, once texts are read of them. */
  #texts: Buffer | undefined;
  #at = 0;
  #end: number;
  #tag = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#end = bytes.length;
  }

  /** Of the field that `next` has found. */
  get tag(): number {
    return this.#tag;
  }

  /** Whether there is one more field, in the message or in the part that was entered. */
  next(): boolean {
    if (this.#at >= this.#end) return false;
    this.#tag = this.whole();
    if (this.#tag < 8) throw malformed();
    return true;
  }

  /** Passes over the value of the field that `next` has found. */
  skip(): void {
    this.#skip(this.#tag & 7);
  }

  /** Goes into the message that is this field's value. @returns what `leave` is to be given */
  enter(): number {
    const outerEnd = this.#end;
    this.#end = this.#endOfPart();
    return outerEnd;
  }

  /** Goes on behind the part that was entered last, read to its end or not. */
  leave(outerEnd: number): void {
    this.#at = this.#end;
    this.#end = outerEnd;
  }

  /** A whole number without a sign; digits beyond 2^53 are lost. */
  whole(): number {
    const first = this.#bytes[this.#at];
    if (first === undefined || first > 127 || this.#at >= this.#end) return this.#longWhole();
    this.#at += 1;
    return first;
  }

  #longWhole(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 70; scale *= 128) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined || this.#at >= this.#end) throw malformed();
      this.#at += 1;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    throw malformed();
  }

  double(): number {
    const at = this.#at;
    this.#pass(8);
    return this.#view.getFloat64(at, true);
  }

  text(): string {
    const { buffer, byteOffset, byteLength } = this.#bytes;
    this.#texts ??= Buffer.from(buffer, byteOffset, byteLength);
    const end = this.#endOfPart();
    const text = this.#texts.toString("utf8", this.#at, end);
    this.#at = end;
    return text;
  }

  /** What is made of a field's bytes where they stand. */
  readPart<Made>(read: (bytes: Uint8Array, start: number, end: number) => Made): Made {
    const end = this.#endOfPart();
    const start = this.#at;
    this.#at = end;
    return read(this.#bytes, start, end);
  }

  /** A field's bytes, in place. */
  part(): Uint8Array {
    const end = this.#endOfPart();
    const part = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return part;
  }

  #endOfPart(): number {
    const end = this.whole() + this.#at;
    if (end > this.#end) throw malformed();
    return end;
  }

  #skip(type: WireType): void {
    if (type === WireType.Varint) this.whole();
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

function malformed(): Error {
  return new Error("the bytes are no message");
}
