import { ServiceError } from "../../../core/base/errors.js";

const newline = 10;
const lineBytesMax = 256;

/** Reads lines, and the data of known length that follows them. */
export class PageReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Reads a line and returns the groups of the pattern. */
  line(pattern: RegExp): readonly string[] {
    const end = this.#bytes.indexOf(newline, this.#at);
    const text =
      end < 0 || end - this.#at > lineBytesMax ? "" : this.#bytes.toString("latin1", this.#at, end);
    const match = pattern.exec(text);
    if (match === null) throw new ServiceError("STORE_PROTOCOL");
    this.#at = end + 1;
    return match.slice(1);
  }

  /** Reads this many bytes, which share the memory. */
  bytes(length: number): Buffer {
    const start = this.#at;
    this.#at += length;
    if (this.#at > this.#bytes.length) throw new ServiceError("STORE_PROTOCOL");
    return this.#bytes.subarray(start, this.#at);
  }

  /** Reads this many bytes as text. */
  text(length: number): string {
    return this.bytes(length).toString();
  }

  /** Reads all remaining bytes, which share the memory. */
  rest(): Buffer {
    return this.bytes(this.#bytes.length - this.#at);
  }
}
