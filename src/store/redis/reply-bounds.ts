/** The longest reply, in bytes: twice the reports of all replicas, which are the longest. */
export const replyBytesMax = 33_554_432;

/** The most parts of lists that one reply promises; the largest cluster tells of 16,384 slots. */
export const replyPartsMax = 131_072;

/** The most lists in each other. */
const depthMax = 16;

const [zero, nine, minus, carriageReturn, lineFeed] = [0x30, 0x39, 0x2d, 0x0d, 0x0a];

/** Those of version 2 of the protocol, which is the one that we ask for. */
const [textKind, listKind, wordKind, errorKind, numberKind] = [0x24, 0x2a, 0x2b, 0x2d, 0x3a];

/**
 * Follows replies before the client library reads them: it makes room for lists by the length that
 * they say, and of 44 bytes a gigabyte. It reads any byte before CR as a digit, and skips the one
 * behind CR unread, so what the two could read differently is refused.
 *
 * Source: Redis serialization protocol specification, RESP2.
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
  /** Whether it is the length of a text or a list. */
  #hasLength = false;
  #length = 0;
  #digitCount = 0;
  /** Whether the length begins with a minus: -1 stands for no value. */
  #isNull = false;
  /** Whether CR was read: LF must follow. */
  #isEnding = false;

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
    if (this.#kind === 0) return this.#beginLine(byte);
    if (this.#isEnding) return byte === lineFeed && this.#endLine();
    if (byte === carriageReturn) this.#isEnding = true;
    else if (this.#hasLength) return this.#takeLength(byte);
    return true;
  }

  #beginLine(kind: number): boolean {
    this.#kind = kind;
    this.#hasLength = kind === textKind || kind === listKind;
    this.#length = 0;
    this.#digitCount = 0;
    this.#isNull = false;
    this.#isEnding = false;
    return this.#hasLength || kind === wordKind || kind === errorKind || kind === numberKind;
  }

  #takeLength(byte: number): boolean {
    if (byte === minus && this.#digitCount === 0 && !this.#isNull) {
      this.#isNull = true;
      return true;
    }
    if (byte < zero || byte > nine) return false;
    this.#digitCount += 1;
    this.#length = 10 * this.#length + byte - zero;
    return !this.#isNull || (this.#digitCount === 1 && this.#length === 1);
  }

  #endLine(): boolean {
    const isText = this.#kind === textKind;
    this.#kind = 0;
    if (this.#hasLength && this.#digitCount === 0) return false;
    if (!this.#hasLength || this.#isNull || (!isText && this.#length === 0)) {
      this.#endPart();
      return true;
    }
    if (isText) {
      // And the line's end behind it.
      this.#textBytes = this.#length + 2;
      return this.#bytes + this.#length <= replyBytesMax;
    }
    this.#parts += this.#length;
    this.#open.push(this.#length);
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
