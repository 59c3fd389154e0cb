/** Maximum size of a reply, in bytes: twice that of the longest, the reports of all replicas. */
export const replyBytesMax = 33_554_432;

/** Maximum list items that one reply announces. The largest cluster reports 16,384 slots. */
export const replyPartsMax = 131_072;

/** Maximum nesting depth of lists. */
const depthMax = 16;

const [zero, nine, minus, carriageReturn, lineFeed] = [0x30, 0x39, 0x2d, 0x0d, 0x0a];

/** Types of version 2 of the protocol, the version that the client requests. */
const [textKind, listKind, wordKind, errorKind, numberKind] = [0x24, 0x2a, 0x2b, 0x2d, 0x3a];

/**
 * Checks replies before the client library reads them. The library allocates lists by the length
 * that they announce: a gigabyte for 44 bytes. It reads any byte before CR as a digit and skips the
 * byte after CR, so anything that it could read differently from this class is refused.
 *
 * Source: Redis serialization protocol specification, RESP2.
 */
export class ReplyBounds {
  /** Remaining items of each open list. */
  readonly #open: number[] = [];
  #bytes = 0;
  #parts = 0;
  /** Remaining bytes of a text. */
  #textBytes = 0;
  /** Type of the current line; 0 at its start. */
  #kind = 0;
  /** Whether the line contains the length of a text or a list. */
  #hasLength = false;
  #length = 0;
  #digitCount = 0;
  /** Whether the length starts with a minus: -1 means no value. */
  #isNull = false;
  /** Whether CR was read, which LF must follow. */
  #isEnding = false;

  /** Reports whether replies are within bounds so far. Must not be called again after false. */
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
      // Includes the line end after the text.
      this.#textBytes = this.#length + 2;
      return this.#bytes + this.#length <= replyBytesMax;
    }
    this.#parts += this.#length;
    this.#open.push(this.#length);
    return this.#parts <= replyPartsMax && this.#open.length <= depthMax;
  }

  /** Ends an item, and every list of which it is the last item. */
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
