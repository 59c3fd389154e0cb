import { WireType } from "@bufbuild/protobuf/wire";

/** Reads a field's value and answers true, or leaves it and answers false. */
export type ReadField = (field: number, type: WireType) => boolean;

const decoder = new TextDecoder();

/**
 * Fields of a message from its bytes, parts of it in place: no reader, no copy and no big integer
 * for each. Whoever reads says which fields it wants; all others are passed over.
 *
 * Source: protobuf.dev/programming-guides/encoding.
 */
export class FieldReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  #end: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#end = bytes.length;
  }

  /** All fields up to the end. @throws Error for bytes that are no message */
  eachField(read: ReadField): void {
    while (this.#at < this.#end) {
      const tag = this.whole();
      const type: WireType = tag & 7;
      const field = Math.floor(tag / 8);
      if (field === 0) throw malformed();
      if (!read(field, type)) this.#skip(type);
    }
    if (this.#at !== this.#end) throw malformed();
  }

  /** All fields of the message that is this field's value. */
  eachFieldOfPart(read: ReadField): void {
    const outerEnd = this.#end;
    const partEnd = this.#endOfPart();
    this.#end = partEnd;
    this.eachField(read);
    this.#end = outerEnd;
  }

  /** A whole number without a sign; digits beyond 2^53 are lost. */
  whole(): number {
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
    return decoder.decode(this.part());
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
