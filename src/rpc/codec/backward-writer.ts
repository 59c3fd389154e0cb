import { assert } from "../../core/base/errors.js";

/**
 * Writes protobuf messages from their end to their beginning, so that the length of what is inside
 * is known where it is written. Messages lie side by side, the next before the last; nothing of one
 * is written again once it is finished.
 *
 * Source: protobuf.dev/programming-guides/encoding.
 */
export class BackwardWriter {
  #slab = Buffer.alloc(0);
  /** What was written last begins here. */
  #at = 0;
  #end = 0;

  /** Where the writer is: `message` takes it for where a message ends. */
  get at(): number {
    return this.#at;
  }

  /**
   * Begins a message.
   *
   * @param lengthMax in bytes, of all that is written until `finish`
   */
  begin(lengthMax: number): void {
    if (lengthMax > this.#at) {
      this.#slab = Buffer.allocUnsafeSlow(Math.max(slabBytes, lengthMax));
      this.#at = this.#slab.length;
    }
    this.#end = this.#at;
  }

  /** The bytes since `begin`. */
  finish(): Uint8Array {
    assert(this.#at >= 0, "a message is no longer than was reckoned");
    return this.#slab.subarray(this.#at, this.#end);
  }

  byte(value: number): void {
    this.#at -= 1;
    this.#slab[this.#at] = value;
  }

  bytes(bytes: Uint8Array): void {
    this.#at -= bytes.length;
    this.#slab.set(bytes, this.#at);
  }

  /** Bytes as a text of one character for each. */
  latin1(text: string): void {
    this.#at -= text.length;
    this.#slab.write(text, this.#at, "latin1");
  }

  /** Whole, 0 to 2^53. */
  varint(value: number): void {
    let length = 1;
    for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) length += 1;
    this.#at -= length;
    let rest = value;
    for (let i = this.#at; i < this.#at + length - 1; i += 1) {
      this.#slab[i] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    this.#slab[this.#at + length - 1] = rest;
  }

  /** A number field; 0 is not written, as proto3 has it. */
  number(tag: number, value: number): void {
    assert(Number.isSafeInteger(value) && value >= 0, "a number is whole and not below 0");
    if (value === 0) return;
    this.varint(value);
    this.byte(tag);
  }

  double(value: number): void {
    this.#at -= 8;
    this.#slab.writeDoubleLE(value, this.#at);
  }

  /** Overwrites the eight bytes that are so many behind what was written last. */
  doubleAt(place: number, value: number): void {
    this.#slab.writeDoubleLE(value, this.#at + place);
  }

  /** The same with one byte. */
  byteAt(place: number, value: number): void {
    this.#slab[this.#at + place] = value;
  }

  /** The length and tag of what was written since the writer was at `end`. */
  message(tag: number, end: number): void {
    this.varint(end - this.#at);
    this.byte(tag);
  }

  /** A text field, written also when it is empty. */
  text(tag: number, text: string): void {
    const end = this.#at;
    if (text.length > asciiLengthMax || !this.#ascii(text)) this.#utf8(text);
    this.message(tag, end);
  }

  /** Answers false, with nothing written, for a text beyond ASCII. */
  #ascii(text: string): boolean {
    const start = this.#at - text.length;
    for (let i = 0; i < text.length; i += 1) {
      const code = text.charCodeAt(i);
      if (code > 127) return false;
      this.#slab[start + i] = code;
    }
    this.#at = start;
    return true;
  }

  #utf8(text: string): void {
    this.#at -= Buffer.byteLength(text, "utf8");
    this.#slab.write(text, this.#at, "utf8");
  }
}

/** Bytes that are allocated at a time. */
const slabBytes = 16_384;

/** Longer texts are faster by the runtime's own way than letter by letter. */
const asciiLengthMax = 48;
