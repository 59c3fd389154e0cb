import { type JsonLeaf, type JsonNode, jsonStepsMax } from "./json-paths.js";
import { decodeJsonText } from "./json-text.js";

/** A range of bytes: from `from` on, below `to`. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/** Receives what a `JsonReader` finds, in the order of the bytes. */
export interface JsonSink<Slot extends string> {
  /** A wanted number, literal or text, cut to at most `jsonScalarBytesMax` bytes. */
  scalar(slot: Slot, text: string, isText: boolean): void;
  /** A part of a wanted text, between its quotes, with its escapes. Never empty. */
  piece(slot: Slot, bytes: Uint8Array, range: ByteRange): void;
  /** The text is complete. */
  pieceEnd(slot: Slot): void;
  /** A document is complete, or an item of a list of documents. */
  documentEnd(): void;
}

/** Maximum bytes kept of a key or a scalar: 128 characters, each as an escape. */
export const jsonScalarBytesMax = 768;

type State =
  | "value"
  | "key"
  | "keyText"
  | "scalarText"
  | "pieces"
  | "skippedText"
  | "skipped"
  | "literal";

/**
 * Finds wanted values in JSON that arrives in pieces, and skips the rest without keeping it.
 * Invalid JSON is read as if it were valid, and never fails. The reader keeps `jsonScalarBytesMax`
 * bytes, and one entry for each of `jsonStepsMax` steps and a list around them. Longer keys match
 * nothing. Documents may follow each other.
 *
 * Source: RFC 8259.
 */
export class JsonReader<Slot extends string> {
  readonly #root: JsonNode<Slot>;
  readonly #sink: JsonSink<Slot>;
  #state: State = "value";
  /** The node of the next value. Undefined if it is not wanted. */
  #target: JsonNode<Slot> | undefined;
  /** The open objects and lists on wanted paths. */
  readonly #open: JsonNode<Slot>[] = [];
  /** Whether each of them is a list. */
  readonly #areLists: boolean[] = [];
  /** Number of open objects and lists that are not wanted. */
  #skippedDepth = 0;
  /** Whether the last piece ended in a text inside of those. */
  #isInSkippedText = false;
  #isEscaped = false;
  readonly #kept = new Uint8Array(jsonScalarBytesMax);
  #keptLength = 0;

  constructor(root: JsonNode<Slot>, sink: JsonSink<Slot>) {
    this.#root = root;
    this.#target = root;
    this.#sink = sink;
  }

  /** Reads the bytes from `from`, below `to`. */
  push(bytes: Uint8Array, from: number, to: number): void {
    let i = from;
    while (i < to) {
      switch (this.#state) {
        case "skipped":
          i = this.#skip(bytes, i, to);
          break;
        case "key":
          i = this.#key(bytes, i, to);
          break;
        case "value":
          i = this.#value(bytes, i, to);
          break;
        case "literal":
          i = this.#literal(bytes, i, to);
          break;
        default:
          i = this.#text(bytes, i, to);
      }
    }
  }

  /** Begins the next document. One that was cut off ends here. */
  reset(): void {
    // If the last one is complete, as nearly always, there is nothing to do.
    if (this.#open.length === 0 && this.#state === "value") return;
    this.#sink.documentEnd();
    this.#open.length = 0;
    this.#areLists.length = 0;
    this.#skippedDepth = 0;
    this.#isInSkippedText = false;
    this.#isEscaped = false;
    this.#state = "value";
    this.#target = this.#root;
  }

  #value(bytes: Uint8Array, from: number, to: number): number {
    let at = from;
    while (at < to && isBetween(bytes[at] ?? 0)) at += 1;
    if (at === to) return to;
    const byte = bytes[at] ?? 0;
    if (byte === quote) {
      const kind = this.#target?.leaf?.kind;
      this.#keptLength = 0;
      this.#state = kind === "scalar" ? "scalarText" : kind === "pieces" ? kind : "skippedText";
      return this.#text(bytes, at + 1, to);
    }
    if (isOpening(byte)) {
      this.#begin(byte === bracket);
      return at + 1;
    }
    if (isClosing(byte)) {
      this.#close();
      return at + 1;
    }
    this.#keptLength = 0;
    this.#state = "literal";
    return at;
  }

  #begin(isList: boolean): void {
    const node = this.#target;
    if (node === undefined || !isWanted(node, isList) || this.#open.length > jsonStepsMax) {
      this.#skippedDepth = 1;
      this.#state = "skipped";
      return;
    }
    this.#open.push(node);
    this.#areLists.push(isList);
    if (isList) this.#target = node.items;
    this.#state = isList ? "value" : "key";
  }

  /** Ends the innermost open object or list. */
  #close(): void {
    this.#target = this.#open.pop();
    this.#areLists.pop();
    this.#ended();
  }

  /** Ends the value of the target. */
  #ended(): void {
    if (this.#target === this.#root) this.#sink.documentEnd();
    const node = this.#open[this.#open.length - 1];
    const isInObject = this.#areLists[this.#areLists.length - 1] === false;
    this.#target = node === undefined ? this.#root : node.items;
    this.#state = isInObject ? "key" : "value";
  }

  #key(bytes: Uint8Array, from: number, to: number): number {
    let at = from;
    while (at < to && bytes[at] !== quote && !isClosing(bytes[at] ?? 0)) at += 1;
    if (at === to) return to;
    if (bytes[at] !== quote) {
      this.#close();
      return at + 1;
    }
    const start = at + 1;
    let end = start;
    while (end < to && bytes[end] !== quote && bytes[end] !== backslash) end += 1;
    if (end < to && bytes[end] === quote) {
      this.#target = this.#field(bytes, start, end);
      this.#state = "value";
      return end + 1;
    }
    // It has an escape, or continues in the next piece.
    this.#keptLength = 0;
    this.#state = "keyText";
    return start;
  }

  /** Returns the field of the innermost object with that key. */
  #field(bytes: Uint8Array, from: number, to: number): JsonNode<Slot> | undefined {
    const fields = this.#open[this.#open.length - 1]?.fields[to - from];
    if (fields === undefined) return undefined;
    for (const field of fields) if (isAt(field.bytes, bytes, from)) return field.node;
    return undefined;
  }

  /** Reads within a text: a key, a wanted value, or another one. */
  #text(bytes: Uint8Array, from: number, to: number): number {
    const end = this.#textEnd(bytes, from, to);
    const isEnd = end < to;
    const leaf = this.#target?.leaf;
    if (this.#state === "pieces") {
      if (leaf !== undefined && end > from) this.#sink.piece(leaf.slot, bytes, { from, to: end });
      if (leaf !== undefined && isEnd) this.#sink.pieceEnd(leaf.slot);
    } else if (this.#state !== "skippedText") this.#keep(bytes, from, end);
    if (!isEnd) return to;
    if (this.#state === "keyText") {
      this.#target = this.#keptField();
      this.#state = "value";
    } else {
      if (this.#state === "scalarText") this.#tell(leaf, true);
      this.#ended();
    }
    return end + 1;
  }

  #literal(bytes: Uint8Array, from: number, to: number): number {
    let end = from;
    while (end < to && !isDelimiter(bytes[end] ?? 0)) end += 1;
    const leaf = this.#target?.leaf;
    if (leaf?.kind === "scalar") this.#keep(bytes, from, end);
    if (end === to) return to;
    if (leaf?.kind === "scalar") this.#tell(leaf, false);
    this.#ended();
    return end;
  }

  /** Reads within an object or list that is not wanted. */
  #skip(bytes: Uint8Array, from: number, to: number): number {
    let depth = this.#skippedDepth;
    let i = from;
    if (this.#isInSkippedText) i = this.#pastSkippedText(bytes, i, to);
    while (i < to && depth > 0) {
      const byte = bytes[i] ?? 0;
      i += 1;
      if (byte === quote) i = this.#pastSkippedText(bytes, i, to);
      // Numbers, and separators: most of a list of numbers.
      else if (byte < bracket) continue;
      else if (isOpening(byte)) depth += 1;
      else if (isClosing(byte)) depth -= 1;
    }
    this.#skippedDepth = depth;
    if (depth === 0) this.#ended();
    return i;
  }

  #pastSkippedText(bytes: Uint8Array, from: number, to: number): number {
    const end = this.#textEnd(bytes, from, to);
    this.#isInSkippedText = end === to;
    return Math.min(to, end + 1);
  }

  /** Returns the position of the closing quote, or `to` if it is not among the bytes. */
  #textEnd(bytes: Uint8Array, from: number, to: number): number {
    let i = from;
    if (this.#isEscaped && i < to) {
      this.#isEscaped = false;
      i += 1;
    }
    while (i < to) {
      const byte = bytes[i];
      if (byte === quote) return i;
      if (byte === backslash) {
        i += 1;
        if (i === to) this.#isEscaped = true;
      }
      i += 1;
    }
    return to;
  }

  #keep(bytes: Uint8Array, from: number, to: number): void {
    const end = Math.min(to, from + jsonScalarBytesMax - this.#keptLength);
    for (let i = from; i < end; i += 1) {
      this.#kept[this.#keptLength] = bytes[i] ?? 0;
      this.#keptLength += 1;
    }
  }

  #tell(leaf: JsonLeaf<Slot> | undefined, isText: boolean): void {
    if (leaf !== undefined) this.#sink.scalar(leaf.slot, this.#keptText(), isText);
  }

  #keptField(): JsonNode<Slot> | undefined {
    const length = this.#keptLength;
    if (length === jsonScalarBytesMax) return undefined;
    const escapeAt = this.#kept.indexOf(backslash);
    if (escapeAt === -1 || escapeAt >= length) return this.#field(this.#kept, 0, length);
    const key = this.#keptText();
    return this.#open
      .at(-1)
      ?.fields.flat()
      .find((field) => field.key === key)?.node;
  }

  #keptText(): string {
    return decodeJsonText(this.#kept, 0, this.#keptLength);
  }
}

const space = 0x20;
const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const bracket = 0x5b;
const backslash = 0x5c;

/** `{` and `[` differ in one bit. */
function isOpening(byte: number): boolean {
  return (byte | 0x20) === 0x7b;
}

/** `}` and `]` differ in one bit. */
function isClosing(byte: number): boolean {
  return (byte | 0x20) === 0x7d;
}

/** Reports whether a byte separates values. */
function isBetween(byte: number): boolean {
  return byte <= space || byte === comma || byte === colon;
}

function isDelimiter(byte: number): boolean {
  return byte <= space || byte === comma || isClosing(byte);
}

function isWanted<Slot extends string>(node: JsonNode<Slot>, isList: boolean): boolean {
  return isList ? node.items !== undefined : node.fields.length > 0;
}

function isAt(wanted: Uint8Array, bytes: Uint8Array, from: number): boolean {
  for (let i = 0; i < wanted.length; i += 1) if (wanted[i] !== bytes[from + i]) return false;
  return true;
}
