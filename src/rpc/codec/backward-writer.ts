import { assert } from "../../core/base/errors.js";

/**
 * Writes protobuf messages from their end to their beginning, so that the length of a nested
 * message is known when it is written. Messages lie side by side, each one before the previous one.
 * Bytes of a finished message are not written again.
 *
 * Source: protobuf.dev/programming-guides/encoding.
 */
export class BackwardWriter {
  #slab = Buffer.alloc(0);
  /** The start of what was written last. */
  #at = 0;
  #end = 0;

  /** The current position. `message` takes it as the end of a message. */
  get at(): number {
    return this.#at;
  }

  /**
   * Begins a message.
   *
   * @param lengthMax maximum length of all that is written until `finish`, in bytes
   */
  begin(lengthMax: number): void {
    if (lengthMax > this.#at) {
      this.#slab = Buffer.allocUnsafeSlow(Math.max(slabBytes, lengthMax));
      this.#at = this.#slab.length;
    }
    this.#end = this.#at;
  }

  /** Returns the bytes written since `begin`. */
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

  /** Writes bytes that are given as one character each. */
  latin1(text: string): void {
    this.#at -= text.length;
    this.#slab.write(text, this.#at, "latin1");
  }

  /** Writes an integer, 0 to 2^53. */
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

  /** Writes a number field. As in proto3, 0 is not written. */
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

  /** Overwrites eight bytes, at an offset from the start of what was written last. */
  doubleAt(place: number, value: number): void {
    this.#slab.writeDoubleLE(value, this.#at + place);
  }

  /** Overwrites one byte, at such an offset. */
  byteAt(place: number, value: number): void {
    this.#slab[this.#at + place] = value;
  }

  /** Writes the length and tag of what was written since the writer was at `end`. */
  message(tag: number, end: number): void {
    this.varint(end - this.#at);
    this.byte(tag);
  }

  /** Writes a text field, even if it is empty. */
  text(tag: number, text: string): void {
    const end = this.#at;
    if (text.length > asciiLengthMax || !this.#ascii(text)) this.#utf8(text);
    this.message(tag, end);
  }

  /** Returns false, with nothing written, if the text is not ASCII. */
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

/** Bytes per allocation. */
const slabBytes = 16_384;

/** Longer texts are written faster by the runtime's own function than by character. */
const asciiLengthMax = 48;
