import type { HeaderFields } from "../base/http2.js";
import { connectionError, type Http2Error, http2ErrorCodes } from "../base/http2-error.js";
import { HpackBlockCache } from "./hpack-block-cache.js";
import { fieldOverheadBytes, HpackTable } from "./hpack-table.js";
import { HuffmanDecoder } from "./huffman.js";

/** Limits of a decoder. */
export interface HpackDecoderBounds {
  /** The announced SETTINGS_HEADER_TABLE_SIZE. */
  readonly tableBytesMax: number;
  /** SETTINGS_MAX_HEADER_LIST_SIZE: names, values and 32 bytes for each field. */
  readonly listBytesMax: number;
  /** Number of fields of one block. */
  readonly fieldCountMax: number;
}

/**
 * Maximum bytes of a received header list, counted as in RFC 9113, section 6.5.2: a caller's trace
 * context is as long as Envoy lets headers be (60 KiB), and Envoy repeats it in its calls.
 */
export const headerListBytesMax = 65_536;

/** Maximum fields of a received header list. */
export const headerFieldsMax = 256;

/**
 * Maximum bytes of a number after its first one: 28 bits, so no number of a block is above 2^28 +
 * 127, and the sum of two is still an exact integer.
 */
export const integerContinuationsMax = 4;

/**
 * Decodes header blocks of one connection, in the order in which they came.
 *
 * Source: RFC 7541.
 */
export class HpackDecoder {
  readonly #bounds: HpackDecoderBounds;
  readonly #table: HpackTable;
  readonly #huffman = new HuffmanDecoder();
  readonly #cache = new HpackBlockCache();
  /** The block that is being decoded, and the position in it. */
  #bytes: Buffer = noBytes;
  #at = 0;
  #end = 0;

  constructor(bounds: HpackDecoderBounds) {
    this.#bounds = bounds;
    this.#table = new HpackTable(bounds.tableBytesMax);
  }

  /** Size of the dynamic table in bytes, at most `tableBytesMax`. */
  get tableBytes(): number {
    return this.#table.bytes;
  }

  /**
   * Decodes a whole block, from `start` to below `end`. Returns undefined above the limits: its
   * stream must be refused, but the connection goes on, because its table was updated anyway.
   *
   * The same object is returned again for a block with the same bytes and meaning, so a caller may
   * remember by it what it found out.
   *
   * @throws Http2Error of the connection, COMPRESSION_ERROR; nothing may be decoded after it
   */
  decode(bytes: Buffer, start: number, end: number): HeaderFields | undefined {
    const known = this.#cache.find(bytes, start, end);
    if (known !== undefined) return known;
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    const { generation } = this.#table;
    this.#updateLimits();
    const fields = this.#readFields();
    // Otherwise an idle connection would keep its last chunk in memory.
    this.#bytes = noBytes;
    this.#cache.enter(this.#table.generation);
    const hasChangedNothing = this.#table.generation === generation;
    if (fields !== undefined && hasChangedNothing) {
      this.#cache.remember(bytes.subarray(start, end), fields);
    }
    return fields;
  }

  /** Reads the new limits of the table that a block may begin with. Source: sections 4.2, 6.3. */
  #updateLimits(): void {
    while (this.#at < this.#end && ((this.#bytes[this.#at] ?? 0) & 0xe0) === 0x20) {
      const limitBytes = this.#integer(0x1f);
      if (limitBytes > this.#bounds.tableBytesMax) {
        throw compressionError("a header table is larger than announced");
      }
      this.#table.setLimit(limitBytes);
    }
  }

  /** Source: sections 6.1 and 6.2. */
  #readFields(): HeaderList | undefined {
    const table = this.#table;
    const list = new HeaderList();
    let isWithinBounds = true;
    while (this.#at < this.#end) {
      const first = this.#bytes[this.#at] ?? 0;
      let name: string;
      let value: string;
      if (first >= 0x80) {
        const index = this.#index(0x7f);
        name = table.name(index);
        value = table.value(index);
      } else if (first >= 0x40) {
        name = this.#literalName(0x3f);
        value = this.#text();
        table.add(name, value);
      } else if (first < 0x20) {
        // Never-indexed and unindexed fields differ only for intermediaries that forward them.
        name = this.#literalName(0x0f);
        value = this.#text();
      } else {
        throw compressionError("a header table changes its size within a block");
      }
      // The rest is decoded all the same, because later blocks depend on its table.
      if (isWithinBounds) isWithinBounds = this.#add(list, name, value);
    }
    return isWithinBounds ? list : undefined;
  }

  /** Adds a field. Returns false if the list then exceeds the limits. */
  #add(list: HeaderList, name: string, value: string): boolean {
    list.add(name, value);
    return list.bytes <= this.#bounds.listBytesMax && list.count <= this.#bounds.fieldCountMax;
  }

  #literalName(prefixMask: number): string {
    if (((this.#bytes[this.#at] ?? 0) & prefixMask) !== 0) {
      return this.#table.name(this.#index(prefixMask));
    }
    this.#at += 1;
    return this.#text();
  }

  /** Reads an index that refers to a field. Source: section 2.3.3. */
  #index(prefixMask: number): number {
    const index = this.#integer(prefixMask);
    if (!this.#table.has(index)) throw compressionError("an index has no field");
    return index;
  }

  /** Source: section 5.2. */
  #text(): string {
    if (this.#at >= this.#end) throw compressionError("a block ends within a field");
    const isHuffman = (this.#bytes[this.#at] ?? 0) >= 0x80;
    const byteCount = this.#integer(0x7f);
    const start = this.#at;
    const end = start + byteCount;
    if (end > this.#end) throw compressionError("a string is longer than its block");
    this.#at = end;
    if (isHuffman) return this.#huffman.decode(this.#bytes, start, end);
    return this.#bytes.toString("latin1", start, end);
  }

  /**
   * Reads a number whose first bits share a byte with something else. For example, 1337 with a
   * prefix of five bits (0x1f) is 1f 9a 0a: 31 + 26 + 10 * 2^7.
   *
   * Source: section 5.1.
   */
  #integer(prefixMask: number): number {
    let value = (this.#bytes[this.#at] ?? 0) & prefixMask;
    this.#at += 1;
    if (value < prefixMask) return value;
    for (let i = 0; i < integerContinuationsMax; i += 1) {
      if (this.#at >= this.#end) throw compressionError("a block ends within a number");
      const byte = this.#bytes[this.#at] ?? 0;
      this.#at += 1;
      value += (byte & 0x7f) << (7 * i);
      if (byte < 0x80) return value;
    }
    throw compressionError("a number is too large");
  }
}

const noBytes: Buffer = Buffer.alloc(0);

function compressionError(message: string): Http2Error {
  return connectionError(http2ErrorCodes.compressionError, message);
}

/** The fields of a header block, in the order in which they are decoded. */
class HeaderList implements HeaderFields {
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  #bytes = 0;

  get count(): number {
    return this.#names.length;
  }

  /** Names, values and 32 for each field. Source: RFC 9113, section 6.5.2. */
  get bytes(): number {
    return this.#bytes;
  }

  name(index: number): string {
    return this.#names[index] ?? "";
  }

  value(index: number): string {
    return this.#values[index] ?? "";
  }

  get(name: string): string | undefined {
    for (let i = 0; i < this.#names.length; i += 1) {
      if (this.#names[i] === name) return this.#values[i];
    }
    return undefined;
  }

  /** Appends a field. */
  add(name: string, value: string): void {
    this.#names.push(name);
    this.#values.push(value);
    this.#bytes += name.length + value.length + fieldOverheadBytes;
  }
}
