/** Maximum length of a text as UTF-8, in bytes. */
const textBytesMax = 65_535;

/** Largest whole number in four bytes. */
const wholeMax = 2 ** 32 - 1;

/** Largest measure, slightly below the maximum of four bytes. */
const measureMax = 3.4e38;

/** Maximum bytes of a count, which has 35 bits. */
export const countBytesMax = 5;

const firstBytes = 4_096;

/** Bytes that are read or written before other work gets a turn: less than a millisecond. */
export const turnBytes = 16_384;

/**
 * Maximum texts of a table: as many as the Envoys that fill a report or a snapshot. A map of them
 * grows in less than a turn.
 */
export const textsMax = 32_768;

/** Writes numbers and texts in sequence, little-endian. Its buffer grows as needed. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(firstBytes);
  #at = 0;
  #turnEnd = turnBytes;

  /** Returns everything that was written. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  /** Position of the next field. */
  get position(): number {
    return this.#at;
  }

  /** Reports whether other work should get a turn, after each `turnBytes` that were written. */
  endsTurn(): boolean {
    if (this.#at < this.#turnEnd) return false;
    this.#turnEnd = this.#at + turnBytes;
    return true;
  }

  /** Adds to a measure that was written at this position and is not undefined. */
  addToMeasure(position: number, more: number): void {
    const sum = this.#bytes.readFloatLE(position) + more;
    this.#bytes.writeFloatLE(Math.min(measureMax, Math.max(0, sum)), position);
  }

  /** @param value a whole number from 0 to 255 */
  byte(value: number): void {
    this.#reserve(1);
    this.#at = this.#bytes.writeUInt8(value, this.#at);
  }

  /** Writes bytes unchanged. */
  bytes(value: Buffer): void {
    this.#reserve(value.length);
    this.#at += value.copy(this.#bytes, this.#at);
  }

  /** Writes a whole number from 0 to 2^35 in as few bytes as possible: one below 128. */
  count(value: number): void {
    this.#reserve(countBytesMax);
    let left = value;
    for (; left >= 128; left = Math.floor(left / 128)) {
      this.#bytes[this.#at] = (left % 128) + 128;
      this.#at += 1;
    }
    this.#bytes[this.#at] = left;
    this.#at += 1;
  }

  /** Writes a whole number from -`wholeMax` to `wholeMax` in the same way. */
  difference(value: number): void {
    this.count(value >= 0 ? 2 * value : -2 * value - 1);
  }

  /** Writes a whole number from 0 to `wholeMax`. Other values are rounded and clamped. */
  whole(value: number): void {
    this.#reserve(4);
    const cut = Number.isNaN(value) ? 0 : Math.min(wholeMax, Math.max(0, Math.round(value)));
    this.#at = this.#bytes.writeUInt32LE(cut, this.#at);
  }

  /** Writes a measure from 0, with seven digits. NaN is written as 0. */
  measure(value: number): void {
    this.optionalMeasure(Number.isNaN(value) ? 0 : value);
  }

  /** Writes a measure in the same way, but keeps undefined. */
  optionalMeasure(value: number | undefined): void {
    this.#reserve(4);
    const cut = value === undefined ? Number.NaN : Math.min(measureMax, Math.max(0, value));
    this.#at = this.#bytes.writeFloatLE(cut, this.#at);
  }

  /** Writes a ratio from 0 to 1 at full precision. NaN is written as 0. */
  ratio(value: number): void {
    this.#reserve(8);
    const cut = Number.isNaN(value) ? 0 : Math.min(1, Math.max(0, value));
    this.#at = this.#bytes.writeDoubleLE(cut, this.#at);
  }

  /** @param value of at most `textBytesMax` bytes */
  text(value: string): void {
    const lengthBytes = Buffer.byteLength(value);
    this.#reserve(2 + lengthBytes);
    this.#at = this.#bytes.writeUInt16LE(lengthBytes, this.#at);
    this.#at += this.#bytes.write(value, this.#at);
  }

  #reserve(moreBytes: number): void {
    const neededBytes = this.#at + moreBytes;
    if (neededBytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(neededBytes, 2 * this.#bytes.length));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}

/**
 * Reads what a `ByteWriter` wrote. Missing bytes read as 0 or as an empty text, and `isDone`
 * reports them. So a reader is a plain list of fields, with one check at its end.
 */
export class ByteReader {
  readonly #bytes: Buffer;
  /** View of the same bytes: methods of Buffer check their arguments, which takes longer. */
  readonly #view: DataView;
  #at = 0;
  #turnEnd = turnBytes;
  #isGood = true;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Whether all requested fields were present and valid, and nothing is left. */
  get isDone(): boolean {
    return this.#isGood && this.#at === this.#bytes.length;
  }

  /** Reports whether other work should get a turn, after each `turnBytes` that were read. */
  endsTurn(): boolean {
    if (this.#at < this.#turnEnd) return false;
    this.#turnEnd = this.#at + turnBytes;
    return true;
  }

  byte(): number {
    return this.#has(1) ? this.#view.getUint8(this.#at - 1) : 0;
  }

  whole(): number {
    return this.#has(4) ? this.#view.getUint32(this.#at - 4, true) : 0;
  }

  /** Reads a whole number from 0 that `ByteWriter.count` wrote. */
  count(): number {
    let value = 0;
    for (let place = 0, unit = 1; place < countBytesMax; place += 1, unit *= 128) {
      const byte = this.byte();
      if (byte < 128) return value + byte * unit;
      value += (byte - 128) * unit;
    }
    return this.#fail();
  }

  /** Reads a whole number that `ByteWriter.difference` wrote. */
  difference(): number {
    const value = this.count();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** Reads a count below a bound. Returns 0 if it is not below the bound. */
  countBelow(bound: number): number {
    const value = this.count();
    return value < bound ? value : this.#fail();
  }

  /** Reads a measure that must be present: finite, from 0. */
  measure(): number {
    return this.optionalMeasure() ?? this.#fail();
  }

  /** Reads a measure. Returns undefined if none was written. */
  optionalMeasure(): number | undefined {
    const value = this.#has(4) ? this.#view.getFloat32(this.#at - 4, true) : 0;
    if (Number.isNaN(value)) return undefined;
    return value >= 0 && value !== Number.POSITIVE_INFINITY ? value : this.#fail();
  }

  /** Reads a ratio from 0 to 1. */
  ratio(): number {
    const value = this.#has(8) ? this.#view.getFloat64(this.#at - 8, true) : 0;
    return value >= 0 && value <= 1 ? value : this.#fail();
  }

  text(): string {
    const lengthBytes = this.#has(2) ? this.#view.getUint16(this.#at - 2, true) : 0;
    if (!this.#has(lengthBytes)) return "";
    return this.#bytes.toString("utf8", this.#at - lengthBytes, this.#at);
  }

  /**
   * Reads the stated number of rows, in turns. Reads none if there cannot be that many.
   *
   * @param rowBytes minimum size of a row
   */
  *rows(
    { rowBytes, countMax = Number.POSITIVE_INFINITY }: RowBounds,
    read: () => Generator<undefined, void> | void,
  ): Generator<undefined, void> {
    let left = this.whole();
    const isThere = left * rowBytes <= this.#bytes.length - this.#at;
    if (!isThere || left > countMax) left = this.#fail();
    for (; left > 0 && this.#isGood; left -= 1) {
      if (this.endsTurn()) yield;
      const turns = read();
      if (turns !== undefined) yield* turns;
    }
  }

  /** Reads one of a list, written as its position. Returns the first if the position is invalid. */
  oneOf<T>(choices: readonly [T, ...T[]]): T {
    const choice = choices[this.byte()];
    if (choice === undefined) this.#fail();
    return choice ?? choices[0];
  }

  /** Reads a text of a table, written as its position. */
  named(table: readonly string[]): string {
    return table[this.placeOf(table)] ?? "";
  }

  /** Reads the position of a text in a table. Returns 0 if it is invalid. */
  placeOf(table: readonly string[]): number {
    const place = this.whole();
    return place < table.length ? place : this.#fail();
  }

  /** Returns how many rows `rows` would read next. 0 if there cannot be that many. */
  upcoming(rowBytes: number): number {
    if (this.#at + 4 > this.#bytes.length) return 0;
    const count = this.#view.getUint32(this.#at, true);
    return count * rowBytes <= this.#bytes.length - this.#at - 4 ? count : 0;
  }

  #has(moreBytes: number): boolean {
    if (!this.#isGood || this.#at + moreBytes > this.#bytes.length) {
      this.#isGood = false;
      return false;
    }
    this.#at += moreBytes;
    return true;
  }

  /** Marks what was read as invalid. */
  refuse(): void {
    this.#isGood = false;
  }

  #fail(): 0 {
    this.#isGood = false;
    return 0;
  }
}

interface RowBounds {
  readonly rowBytes: number;
  readonly countMax?: number;
}

/** Texts that rows refer to by position. Each is written once. */
export class TextTable {
  readonly #positions = new Map<string, number>();
  /** Size of the texts, including their lengths. */
  sizeBytes = 0;

  /** Returns what a text would add to `sizeBytes`. Infinity if it is too long, or one too many. */
  costOf(text: string): number {
    return this.#positions.has(text) ? 0 : this.costBytes([text]);
  }

  /** Returns the same for several texts. */
  costBytes(texts: Iterable<string>): number {
    let costBytes = 0;
    let count = this.#positions.size;
    for (const text of texts) {
      if (this.#positions.has(text)) continue;
      const lengthBytes = Buffer.byteLength(text);
      count += 1;
      if (lengthBytes > textBytesMax || count > textsMax) return Number.POSITIVE_INFINITY;
      costBytes += lengthBytes + 2;
    }
    return costBytes;
  }

  /** Returns the position of a text. Adds it if it is new. */
  add(text: string): number {
    const known = this.#positions.get(text);
    if (known !== undefined) return known;
    const position = this.#positions.size;
    this.#positions.set(text, position);
    this.sizeBytes += Buffer.byteLength(text) + 2;
    return position;
  }

  /** Writes the table, in turns. */
  *write(writer: ByteWriter): Generator<undefined, void> {
    writer.whole(this.#positions.size);
    for (const text of this.#positions.keys()) {
      writer.text(text);
      if (writer.endsTurn()) yield;
    }
  }
}

/** Reads a `TextTable`, in turns. */
export function* readTexts(reader: ByteReader): Generator<undefined, readonly string[]> {
  const texts: string[] = [];
  yield* reader.rows({ rowBytes: 2, countMax: textsMax }, () => {
    texts.push(reader.text());
  });
  return texts;
}
