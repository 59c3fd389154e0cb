/** The longest reply, in bytes: twice the reports of all replicas, which are the longest. */
export const replyBytesMax = 33_554_432;

/** The most parts of lists that one reply promises; the largest cluster tells of 16,384 slots. */
export const replyPartsMax = 131_072;

/** The most lists in each other. */
const depthMax = 16;

const [zero, nine, minus, lineFeed] = [0x30, 0x39, 0x2d, 0x0a];

const textKinds = new Set(Buffer.from("$=!"));
const listKinds = new Set(Buffer.from("*~>%"));
const mapKind = 0x25;

/**
 * Follows replies before the client library reads them: it makes room for lists by the length that
 * they say, and of 44 bytes a gigabyte.
 *
 * Source: Redis serialization protocol specification.
 */
export class ReplyBounds {
  /** Of the lists that are open: parts that are still to come. */
  readonly #open: number[] = [];
  #bytes = 0;
  #parts = 0;
  /** Of a text: bytes that are still to come. */
  #textBytes = 0;
  /** Of the line that is read; 0: it begins. */
  #kind = 0;
  #number = 0;
  #isNull = false;

  /** Whether replies are within bounds up to here; after a false one it is of no use. */
  take(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length; ) {
      const count = this.#textBytes > 0 ? Math.min(this.#textBytes, bytes.length - at) : 1;
      this.#bytes += count;
      if (this.#bytes > replyBytesMax) return false;
      if (this.#textBytes > 0) {
        this.#textBytes -= count;
        if (this.#textBytes === 0) this.#endPart();
      } else if (!this.#takeByte(bytes[at] ?? 0)) return false;
      at += count;
    }
    return true;
  }

  #takeByte(byte: number): boolean {
    if (this.#kind === 0) {
      this.#kind = byte;
      this.#number = 0;
      this.#isNull = false;
    } else if (byte === lineFeed) return this.#endLine();
    else if (byte >= zero && byte <= nine) this.#number = 10 * this.#number + byte - zero;
    else if (byte === minus) this.#isNull = true;
    return true;
  }

  #endLine(): boolean {
    const kind = this.#kind;
    const isText = textKinds.has(kind);
    const count = kind === mapKind ? 2 * this.#number : this.#number;
    this.#kind = 0;
    if (this.#isNull || (!isText && (!listKinds.has(kind) || count === 0))) {
      this.#endPart();
      return true;
    }
    if (isText) {
      // And the line's end behind it.
      this.#textBytes = count + 2;
      return this.#bytes + count <= replyBytesMax;
    }
    this.#parts += count;
    this.#open.push(count);
    return this.#parts <= replyPartsMax && this.#open.length <= depthMax;
  }

  /** Its end may be that of the lists that it is the last part of. */
  #endPart(): void {
    for (let left = this.#open.pop(); left !== undefined; left = this.#open.pop()) {
      if (left > 1) {
        this.#open.push(left - 1);
        return;
      }
    }
    this.#bytes = 0;
    this.#parts = 0;
  }
}
