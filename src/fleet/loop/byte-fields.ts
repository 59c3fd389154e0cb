/** The longest text in bytes, as UTF-8. */
const textBytesMax = 65_535;

/** The largest whole number of four bytes. */
const wholeMax = 2 ** 32 - 1;

/** The largest measure; four bytes hold little more. */
const measureMax = 3.4e38;

/** What a count takes at most: 35 bits. */
export const countBytesMax = 5;

const firstBytes = 4_096;

/** Bytes that are read or written before others have their turn: less than a millisecond. */
export const turnBytes = 16_384;

/**
 * The most texts of a table: as many Envoys as fill a report or a snapshot. A map by them grows in
 * less than a turn.
 */
export const textsMax = 32_768;

/** Writes numbers and texts one behind the other, little-endian; grows as it needs to. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(firstBytes);
  #at = 0;
  #turnEnd = turnBytes;

  /** All that was written. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  /** Where the next field will be. */
  get position(): number {
    return this.#at;
  }

  /** Whether others should have their turn: `turnBytes` were written since it was so last. */
  endsTurn(): boolean {
    if (this.#at < this.#turnEnd) return false;
    this.#turnEnd = this.#at + turnBytes;
    return true;
  }

  /** Adds to a measure that was written at this position, and is there. */
  addToMeasure(position: number, more: number): void {
    const sum = this.#bytes.readFloatLE(position) + more;
    this.#bytes.writeFloatLE(Math.min(measureMax, Math.max(0, sum)), position);
  }

  /** @param value a whole number from 0 to 255 */
  byte(value: number): void {
    this.#reserve(1);
    this.#at = this.#bytes.writeUInt8(value, this.#at);
  }

  /** Bytes as they are. */
  bytes(value: Buffer): void {
    this.#reserve(value.length);
    this.#at += value.copy(this.#bytes, this.#at);
  }

  /** A whole number from 0 to 2^35, in as few bytes as it takes: in one below 128. */
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

  /** A whole number within `wholeMax` of 0, likewise. */
  difference(value: number): void {
    this.count(value >= 0 ? 2 * value : -2 * value - 1);
  }

  /** A whole number from 0 to `wholeMax`; others are rounded, and cut to that. */
  whole(value: number): void {
    this.#reserve(4);
    const cut = Number.isNaN(value) ? 0 : Math.min(wholeMax, Math.max(0, Math.round(value)));
    this.#at = this.#bytes.writeUInt32LE(cut, this.#at);
  }

  /** A measure from 0, to seven digits; what is none is written as 0. */
  measure(value: number): void {
    this.optionalMeasure(Number.isNaN(value) ? 0 : value);
  }

  /** The same; undefined is kept. */
  optionalMeasure(value: number | undefined): void {
    this.#reserve(4);
    const cut = value === undefined ? Number.NaN : Math.min(measureMax, Math.max(0, value));
    this.#at = this.#bytes.writeFloatLE(cut, this.#at);
  }

  /** A ratio from 0 to 1, as it is; what is none is written as 0. */
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
 * Reads what a `ByteWriter` wrote. Bytes that are not there read as 0 and as an empty text, and
 * `isDone` tells of it: so a reader is a plain list of fields, and looks once, at its end.
 */
export class ByteReader {
  readonly #bytes: Buffer;
  /** Of the same bytes; see `OpenRow` for what it spares. */
  readonly #view: DataView;
  #at = 0;
  #turnEnd = turnBytes;
  #isGood = true;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Whether all that was asked for was there, was what it has to be, and nothing is left. */
  get isDone(): boolean {
    return this.#isGood && this.#at === this.#bytes.length;
  }

  /** Whether others should have their turn: `turnBytes` were read since it was so the last time. */
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

  /** A whole number from 0, as `ByteWriter.count` wrote it. */
  count(): number {
    let value = 0;
    for (let place = 0, unit = 1; place < countBytesMax; place += 1, unit *= 128) {
      const byte = this.byte();
      if (byte < 128) return value + byte * unit;
      value += (byte - 128) * unit;
    }
    return this.#fail();
  }

  /** A whole number, as `ByteWriter.difference` wrote it. */
  difference(): number {
    const value = this.count();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** A count below a bound; 0 for one that is not. */
  countBelow(bound: number): number {
    const value = this.count();
    return value < bound ? value : this.#fail();
  }

  /** A measure that has to be there: finite, from 0. */
  measure(): number {
    return this.optionalMeasure() ?? this.#fail();
  }

  /** Undefined where none was written. */
  optionalMeasure(): number | undefined {
    const value = this.#has(4) ? this.#view.getFloat32(this.#at - 4, true) : 0;
    if (Number.isNaN(value)) return undefined;
    return value >= 0 && value !== Number.POSITIVE_INFINITY ? value : this.#fail();
  }

  /** A ratio from 0 to 1. */
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
   * Reads as many rows as are said to follow, in turns; none where there cannot be that many.
   *
   * @param rowBytes what a row takes at least
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

  /** One of a list, written as its position; the first where it is none. */
  oneOf<T>(choices: readonly [T, ...T[]]): T {
    const choice = choices[this.byte()];
    if (choice === undefined) this.#fail();
    return choice ?? choices[0];
  }

  /** A text of a table, written as its position. */
  named(table: readonly string[]): string {
    return table[this.placeOf(table)] ?? "";
  }

  /** The same, as its position; 0 for a position that is none. */
  placeOf(table: readonly string[]): number {
    const place = this.whole();
    return place < table.length ? place : this.#fail();
  }

  /** How many rows `rows` would read next; 0 where there cannot be that many. */
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

  /** What was read is not what it has to be. */
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

/** Texts that rows name by position: each is written once. */
export class TextTable {
  readonly #positions = new Map<string, number>();
  /** What the texts take, with their lengths. */
  sizeBytes = 0;

  /** What a text would add to `sizeBytes`; infinite for one that is too long, or too many. */
  costOf(text: string): number {
    return this.#positions.has(text) ? 0 : this.costBytes([text]);
  }

  /** The same of several. */
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

  /** The position of a text, which is added if it is new. */
  add(text: string): number {
    const known = this.#positions.get(text);
    if (known !== undefined) return known;
    const position = this.#positions.size;
    this.#positions.set(text, position);
    this.sizeBytes += Buffer.byteLength(text) + 2;
    return position;
  }

  /** In turns. */
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
