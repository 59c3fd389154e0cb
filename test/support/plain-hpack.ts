import { OutputBuffer } from "../../src/wire/base/output-buffer.js";
import { HpackTable } from "../../src/wire/hpack/hpack-table.js";
import { huffmanBytes, writeHuffman } from "../../src/wire/hpack/huffman.js";
import type { Dice } from "../simulation/dice.js";

/** A field as a test writes it. */
export type PlainField = readonly [name: string, value: string];

const staticCount = 61;
const overheadBytes = 32;
const staticTable = new HpackTable(0);

/** The dynamic table as a list, the youngest first: slow, and plain enough to be right. */
export class PlainTable {
  readonly fields: PlainField[] = [];
  limitBytes: number;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  get bytes(): number {
    return this.fields.reduce((sum, [name, value]) => sum + fieldBytes(name, value), 0);
  }

  add(field: PlainField): void {
    this.fields.unshift(field);
    this.trim();
  }

  trim(): void {
    while (this.bytes > this.limitBytes) this.fields.pop();
  }

  at(index: number): PlainField | undefined {
    if (index >= 1 && index <= staticCount) {
      return [staticTable.name(index), staticTable.value(index)];
    }
    return this.fields[index - staticCount - 1];
  }
}

function fieldBytes(name: string, value: string): number {
  return name.length + value.length + overheadBytes;
}

/** Bounds as `HpackDecoder` has them. */
export interface PlainBounds {
  readonly tableBytesMax: number;
  readonly listBytesMax: number;
  readonly fieldCountMax: number;
}

/** What a block says: its fields, that they are too many, or that it is wrong. */
export type PlainOutcome =
  | { readonly kind: "fields"; readonly fields: readonly PlainField[] }
  | { readonly kind: "tooLarge" }
  | { readonly kind: "wrong" };

class WrongBlock extends Error {}

/** A decoder as the RFC describes it, bit by bit, to hold the real one against. */
export class PlainHpackDecoder {
  readonly #bounds: PlainBounds;
  readonly table: PlainTable;
  #bytes: number[] = [];

  constructor(bounds: PlainBounds) {
    this.#bounds = bounds;
    this.table = new PlainTable(bounds.tableBytesMax);
  }

  /** One that is where this one is, and goes its own way from here. */
  clone(): PlainHpackDecoder {
    const clone = new PlainHpackDecoder(this.#bounds);
    clone.table.fields.push(...this.table.fields);
    clone.table.limitBytes = this.table.limitBytes;
    return clone;
  }

  /** Whether the block leaves another table than it has found. Decodes it. */
  changesTable(block: Uint8Array): boolean {
    const before = [this.table.limitBytes, [...this.table.fields]];
    this.decode(block);
    return JSON.stringify(before) !== JSON.stringify([this.table.limitBytes, this.table.fields]);
  }

  decode(block: Uint8Array): PlainOutcome {
    this.#bytes = [...block];
    const fields: PlainField[] = [];
    try {
      while (this.#bytes.length > 0) this.#next(fields);
    } catch (thrown) {
      if (thrown instanceof WrongBlock) return { kind: "wrong" };
      throw thrown;
    }
    const bytes = fields.reduce((sum, [name, value]) => sum + fieldBytes(name, value), 0);
    const { fieldCountMax, listBytesMax } = this.#bounds;
    if (fields.length > fieldCountMax || bytes > listBytesMax) return { kind: "tooLarge" };
    return { kind: "fields", fields };
  }

  #next(fields: PlainField[]): void {
    const first = (this.#bytes[0] ?? 0).toString(2).padStart(8, "0");
    if (first.startsWith("1")) {
      fields.push(this.#field(this.#integer(7)));
    } else if (first.startsWith("01")) {
      const field = this.#literal(6);
      this.table.add(field);
      fields.push(field);
    } else if (first.startsWith("001")) {
      const limit = this.#integer(5);
      if (fields.length > 0 || limit > this.#bounds.tableBytesMax) throw new WrongBlock();
      this.table.limitBytes = limit;
      this.table.trim();
    } else {
      fields.push(this.#literal(4));
    }
  }

  #literal(prefixBits: number): PlainField {
    const index = this.#integer(prefixBits);
    const name = index === 0 ? this.#text() : this.#field(index)[0];
    return [name, this.#text()];
  }

  #field(index: number): PlainField {
    const field = this.table.at(index);
    if (field === undefined) throw new WrongBlock();
    return field;
  }

  #text(): string {
    const isHuffman = (this.#bytes[0] ?? 0) >= 128;
    const length = this.#integer(7);
    if (length > this.#bytes.length) throw new WrongBlock();
    const text = this.#bytes.splice(0, length);
    return isHuffman ? plainHuffman(text) : String.fromCharCode(...text);
  }

  #integer(prefixBits: number): number {
    const most = 2 ** prefixBits - 1;
    let value = this.#byte() % 2 ** prefixBits;
    if (value < most) return value;
    // Four bytes more are the implementation's bound.
    for (let power = 0; power < 28; power += 7) {
      const byte = this.#byte();
      value += (byte % 128) * 2 ** power;
      if (byte < 128) return value;
    }
    throw new WrongBlock();
  }

  #byte(): number {
    const byte = this.#bytes.shift();
    if (byte === undefined) throw new WrongBlock();
    return byte;
  }
}

/** Bits to symbols. Eight times a symbol is as many bytes as its code has bits. */
const symbols: ReadonlyMap<string, string> = new Map(
  Array.from({ length: 256 }, (_, symbol) => {
    const text = String.fromCharCode(symbol);
    const bits = bitsOf([...huffman(text.repeat(8))]);
    return [bits.slice(0, bits.length / 8), text] as const;
  }),
);

/** The Huffman code of a text. */
export function huffman(text: string): Buffer {
  const output = new OutputBuffer();
  writeHuffman(text, output);
  return output.take();
}

function bitsOf(bytes: readonly number[]): string {
  return bytes.map((byte) => byte.toString(2).padStart(8, "0")).join("");
}

function plainHuffman(bytes: readonly number[]): string {
  let text = "";
  let code = "";
  for (const bit of bitsOf(bytes)) {
    code += bit;
    const symbol = symbols.get(code);
    if (symbol === undefined) continue;
    text += symbol;
    code = "";
  }
  if (!/^1{0,7}$/.test(code)) throw new WrongBlock();
  return text;
}

/**
 * Writes blocks as no library does: each field in any of its representations, by a throw of dice,
 * with changes of the table's size before them.
 */
export class RandomBlocks {
  readonly #dice: Dice;
  readonly #table: PlainTable;
  readonly #tableBytesMax: number;

  constructor(dice: Dice, tableBytesMax: number) {
    this.#dice = dice;
    this.#table = new PlainTable(tableBytesMax);
    this.#tableBytesMax = tableBytesMax;
  }

  /** One block and the fields that it says. */
  next(): { readonly block: Buffer; readonly fields: readonly PlainField[] } {
    const dice = this.#dice;
    const parts: Buffer[] = [];
    if (dice.chance(0.05)) {
      const limit = dice.below(this.#tableBytesMax + 1);
      this.#table.limitBytes = limit;
      this.#table.trim();
      parts.push(plainInteger(0x20, 5, limit));
    }
    const fields: PlainField[] = [];
    for (let left = dice.below(8); left > 0; left -= 1) {
      const known = this.#table.at(1 + dice.below(staticCount + this.#table.fields.length));
      const field = known !== undefined && dice.chance(0.6) ? known : this.#randomField(known);
      fields.push(field);
      parts.push(this.#write(field));
    }
    return { block: Buffer.concat(parts), fields };
  }

  #randomField(known: PlainField | undefined): PlainField {
    const dice = this.#dice;
    const text = (bytesMax: number): string =>
      String.fromCharCode(...Array.from({ length: dice.below(bytesMax) }, () => dice.below(256)));
    if (known !== undefined && dice.chance(0.5)) return [known[0], text(20)];
    return [text(12), dice.chance(0.05) ? text(400) : text(20)];
  }

  #write(field: PlainField): Buffer {
    const dice = this.#dice;
    const whole = this.#indexOf((other) => other[0] === field[0] && other[1] === field[1]);
    if (whole !== undefined && dice.chance(0.8)) return plainInteger(0x80, 7, whole);
    const name = this.#indexOf((other) => other[0] === field[0]);
    const [pattern, bits] = dice.pick([
      [0x40, 6],
      [0x00, 4],
      [0x10, 4],
    ] as const);
    const isNamed = name !== undefined && dice.chance(0.8);
    const parts = [plainInteger(pattern, bits, isNamed ? name : 0)];
    if (!isNamed) parts.push(plainText(field[0], dice.chance(0.5)));
    parts.push(plainText(field[1], dice.chance(0.5)));
    if (pattern === 0x40) this.#table.add(field);
    return Buffer.concat(parts);
  }

  #indexOf(isWanted: (field: PlainField) => boolean): number | undefined {
    for (let index = 1; index <= staticCount + this.#table.fields.length; index += 1) {
      const field = this.#table.at(index);
      if (field !== undefined && isWanted(field)) return index;
    }
    return undefined;
  }
}

/** A number behind the bits of `pattern`. */
export function plainInteger(pattern: number, prefixBits: number, value: number): Buffer {
  const most = 2 ** prefixBits - 1;
  if (value < most) return Buffer.of(pattern + value);
  const bytes = [pattern + most];
  let rest = value - most;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

/** A text with its length before it. */
export function plainText(text: string, isHuffman: boolean): Buffer {
  if (!isHuffman) {
    return Buffer.concat([plainInteger(0, 7, text.length), Buffer.from(text, "latin1")]);
  }
  return Buffer.concat([plainInteger(0x80, 7, huffmanBytes(text)), huffman(text)]);
}
