import { ServiceError } from "../../core/base/errors.js";

/**
 * Reads the fields of a response. Each length is checked against the bytes that are there. No
 * length or count that the peer sends causes an allocation.
 *
 * Source: Apache Kafka, "Protocol", primitive types of versions without tagged fields.
 */
export class KafkaFields {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  int8(): number {
    return this.#bytes.readInt8(this.#take(1));
  }

  int16(): number {
    return this.#bytes.readInt16BE(this.#take(2));
  }

  int32(): number {
    return this.#bytes.readInt32BE(this.#take(4));
  }

  /** Reads a number that a double holds exactly. */
  int64(): number {
    const value = Number(this.#bytes.readBigInt64BE(this.#take(8)));
    return Number.isSafeInteger(value) ? value : malformed();
  }

  /** @param bytesMax maximum length of a valid text */
  text(bytesMax: number): string {
    return this.nullableText(bytesMax) ?? malformed();
  }

  nullableText(bytesMax: number): string | undefined {
    const length = this.int16();
    if (length === -1) return undefined;
    if (length < 0 || length > bytesMax) return malformed();
    const start = this.#take(length);
    return this.#bytes.toString("utf8", start, start + length);
  }

  /** Returns a view. */
  bytes(): Buffer {
    const length = this.int32();
    if (length < 0) return malformed();
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  /**
   * Reads an array.
   *
   * @param countMax maximum number of valid items
   * @param read reads one item; it reads at least one byte
   */
  list<Item>(countMax: number, read: () => Item): readonly Item[] {
    const count = this.int32();
    // An empty array may be null.
    if (count < -1) malformed();
    if (count > countMax) throw new ServiceError("SIGNAL_TOO_LARGE");
    const items: Item[] = [];
    while (items.length < count) items.push(read());
    return items;
  }

  skip(byteCount: number): void {
    this.#take(byteCount);
  }

  /** Refuses bytes that no field has read. */
  end(): void {
    if (this.#at !== this.#bytes.length) malformed();
  }

  #take(byteCount: number): number {
    const start = this.#at;
    if (byteCount < 0 || byteCount > this.#bytes.length - start) return malformed();
    this.#at = start + byteCount;
    return start;
  }
}

/** @throws ServiceError SIGNAL_MALFORMED */
export function malformed(): never {
  throw new ServiceError("SIGNAL_MALFORMED", "The broker sent a response that is not Kafka's.");
}

/** Builds a request from its fields. */
export class KafkaOutput {
  readonly #parts: Buffer[] = [];

  int8(value: number): this {
    const part = Buffer.alloc(1);
    part.writeInt8(value);
    return this.raw(part);
  }

  int16(value: number): this {
    const part = Buffer.alloc(2);
    part.writeInt16BE(value);
    return this.raw(part);
  }

  int32(value: number): this {
    const part = Buffer.alloc(4);
    part.writeInt32BE(value);
    return this.raw(part);
  }

  /** @param value a safe integer */
  int64(value: number): this {
    const part = Buffer.alloc(8);
    part.writeBigInt64BE(BigInt(value));
    return this.raw(part);
  }

  text(value: string): this {
    const part = Buffer.from(value);
    return this.int16(part.length).raw(part);
  }

  bytes(value: Uint8Array): this {
    return this.int32(value.length).raw(value);
  }

  /** Writes an array. `write` writes one item. */
  list<Item>(items: readonly Item[], write: (item: Item) => void): this {
    this.int32(items.length);
    for (const item of items) write(item);
    return this;
  }

  raw(part: Uint8Array): this {
    this.#parts.push(Buffer.from(part.buffer, part.byteOffset, part.byteLength));
    return this;
  }

  /** All that was written. */
  whole(): Buffer {
    return Buffer.concat(this.#parts);
  }
}
