const headBytes = 5;
const itemBytesMax = 9;

/** Number of digits of the largest BITFIELD offset used here. */
const digitsMax = 7;

/**
 * A list of numbers for a script, which reads it with `cmsgpack.unpack`. For a few hundred numbers,
 * that takes less time in Redis and in this process than as many arguments.
 *
 * Source: the MessagePack specification: array 32, uint 32, uint 64, int 8 and fixstr.
 */
export class PackedList {
  readonly #bytes: Buffer;
  #at = headBytes;
  #count = 0;

  /** @param itemsMax maximum number of items that will be added */
  constructor(itemsMax: number) {
    this.#bytes = Buffer.allocUnsafe(headBytes + itemBytesMax * itemsMax);
  }

  /** Adds an integer of at least 0 and below 2^53, or -1. */
  add(number: number): void {
    const bytes = this.#bytes;
    this.#count += 1;
    if (number < 0) {
      bytes[this.#at] = 0xff;
      this.#at += 1;
    } else if (number < 2 ** 32) {
      bytes[this.#at] = 0xce;
      this.#at = bytes.writeUInt32BE(number, this.#at + 1);
    } else {
      bytes[this.#at] = 0xcf;
      bytes.writeUInt32BE(Math.floor(number / 2 ** 32), this.#at + 1);
      this.#at = bytes.writeUInt32BE(number % 2 ** 32, this.#at + 5);
    }
  }

  /** Adds a field offset in BITFIELD's format, such as `#12`. The index is below 10^7. */
  addOffset(index: number): void {
    const bytes = this.#bytes;
    let digitCount = 1;
    for (let end = 10; digitCount < digitsMax && index >= end; end *= 10) digitCount += 1;
    bytes[this.#at] = 0xa1 + digitCount;
    bytes[this.#at + 1] = 0x23;
    let left = index;
    for (let at = this.#at + 1 + digitCount; at > this.#at + 1; at -= 1) {
      bytes[at] = 0x30 + (left % 10);
      left = Math.floor(left / 10);
    }
    this.#at += 2 + digitCount;
    this.#count += 1;
  }

  finish(): Buffer {
    this.#bytes[0] = 0xdd;
    this.#bytes.writeUInt32BE(this.#count, 1);
    return this.#bytes.subarray(0, this.#at);
  }
}
