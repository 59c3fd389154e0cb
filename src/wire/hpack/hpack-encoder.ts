import { assert } from "../../core/base/errors.js";
import { initialTableBytes } from "../base/frames.js";
import type { SentField } from "../base/http2.js";
import type { OutputBuffer } from "../base/output-buffer.js";
import { HpackTable } from "./hpack-table.js";
import { huffmanBytes, writeHuffman } from "./huffman.js";

/** Size of the table on this side, even if the peer allows more: only a few short fields repeat. */
export const encoderTableBytesMax = initialTableBytes;

/** Maximum blocks whose bytes are remembered: successful answers have few heads and trailers. */
export const rememberedBlocksMax = 8;

/**
 * Names whose values repeat from answer to answer and are not secret. No other field is put into
 * the table, because it would only evict these.
 */
const indexedNames: ReadonlySet<string> = new Set([
  "content-type",
  "grpc-status",
  "grpc-accept-encoding",
  "grpc-encoding",
]);

/** Longer values of these names do not repeat. */
const indexedValueBytesMax = 64;

/**
 * Encodes header blocks of one connection, in the order in which they are sent.
 *
 * Source: RFC 7541.
 */
export class HpackEncoder {
  readonly #table = new HpackTable(encoderTableBytesMax);
  /** The smallest and the last limit since the last block. Undefined without a change. */
  #changedLimits: { readonly least: number; readonly last: number } | undefined;
  /** Blocks that have only indexed fields, by the very array that they were encoded from. */
  readonly #remembered: { readonly fields: readonly SentField[]; readonly block: Buffer }[] = [];
  #nextRemembered = 0;

  /** Size of the dynamic table, in bytes. */
  get tableBytes(): number {
    return this.#table.bytes;
  }

  /** Applies the peer's SETTINGS_HEADER_TABLE_SIZE. The next block announces the result. */
  setPeerTableBytes(bytes: number): void {
    const last = Math.min(bytes, encoderTableBytesMax);
    const least = Math.min(last, this.#changedLimits?.least ?? this.#table.limitBytes);
    this.#changedLimits = { least, last };
  }

  /**
   * Appends a block to `output`. An array of fields must not change after it was given, because its
   * encoding may be remembered for it.
   */
  encode(fields: readonly SentField[], output: OutputBuffer): void {
    if (this.#changedLimits !== undefined) this.#announceLimits(output);
    for (let i = 0; i < this.#remembered.length; i += 1) {
      const known = this.#remembered[i];
      if (known?.fields !== fields) continue;
      output.bytes(known.block);
      return;
    }
    // Before the first byte: half a block would leave the peer's table behind this one.
    for (const [name, value] of fields) assertSendable(name, value);
    const start = output.length;
    let isIndexed = true;
    for (const [name, value] of fields) {
      const index = this.#table.indexOf(name, value);
      if (index === undefined) this.#literal(name, value, output);
      else writeInteger({ pattern: 0x80, prefixMask: 0x7f, value: index }, output);
      isIndexed &&= index !== undefined;
    }
    if (isIndexed) this.#remember(fields, output.copyFrom(start));
  }

  /** Source: RFC 7541, sections 4.2 and 6.3. */
  #announceLimits(output: OutputBuffer): void {
    const changed = this.#changedLimits;
    if (changed === undefined) return;
    this.#changedLimits = undefined;
    if (changed.least < this.#table.limitBytes) this.#setLimit(changed.least, output);
    if (changed.last !== this.#table.limitBytes) this.#setLimit(changed.last, output);
  }

  #setLimit(bytes: number, output: OutputBuffer): void {
    this.#table.setLimit(bytes);
    this.#forget();
    writeInteger({ pattern: 0x20, prefixMask: 0x1f, value: bytes }, output);
  }

  /** Source: RFC 7541, section 6.2. */
  #literal(name: string, value: string, output: OutputBuffer): void {
    const isAdded = indexedNames.has(name) && value.length <= indexedValueBytesMax;
    const index = this.#table.indexOfName(name) ?? 0;
    const pattern = isAdded ? 0x40 : 0;
    writeInteger({ pattern, prefixMask: isAdded ? 0x3f : 0x0f, value: index }, output);
    if (index === 0) writeText(name, output);
    writeText(value, output);
    if (!isAdded) return;
    this.#table.add(name, value);
    this.#forget();
  }

  #remember(fields: readonly SentField[], block: Buffer): void {
    this.#remembered[this.#nextRemembered] = { fields, block };
    this.#nextRemembered = (this.#nextRemembered + 1) % rememberedBlocksMax;
  }

  /** Forgets all blocks: the table has changed, and indexes may refer to other fields. */
  #forget(): void {
    this.#remembered.length = 0;
    this.#nextRemembered = 0;
  }
}

/** Asserts that a field may be sent. After a bug, the peer could read a value as another field. */
function assertSendable(name: string, value: string): void {
  assert(name !== "" && /^:?[!#-'*+.0-9^-z|~-]+$/.test(name), "a field's name is a token");
  assert(/^[\t\x20-\x7e\x80-\xff]*$/.test(value), "a field's value is text of Latin-1");
}

interface PrefixedInteger {
  /** The bits before the prefix. */
  readonly pattern: number;
  readonly prefixMask: number;
  readonly value: number;
}

/** Source: RFC 7541, section 5.1. */
function writeInteger({ pattern, prefixMask, value }: PrefixedInteger, output: OutputBuffer): void {
  if (value < prefixMask) {
    output.byte(pattern | value);
    return;
  }
  output.byte(pattern | prefixMask);
  let rest = value - prefixMask;
  for (; rest >= 0x80; rest >>>= 7) output.byte((rest & 0x7f) | 0x80);
  output.byte(rest);
}

/** Writes a text as it is, or in Huffman code if shorter. Source: RFC 7541, section 5.2. */
function writeText(text: string, output: OutputBuffer): void {
  const encodedBytes = huffmanBytes(text);
  if (encodedBytes < text.length) {
    writeInteger({ pattern: 0x80, prefixMask: 0x7f, value: encodedBytes }, output);
    writeHuffman(text, output);
    return;
  }
  writeInteger({ pattern: 0, prefixMask: 0x7f, value: text.length }, output);
  output.latin1(text);
}
