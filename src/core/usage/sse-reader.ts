/** Receives the events of a stream, in the order of the bytes. */
export interface EventSink {
  /** Bytes of an event's data. */
  data(bytes: Uint8Array, from: number, to: number): void;
  /** The event is complete. */
  eventEnd(): void;
}

type LineState = "name" | "space" | "data" | "other";

/**
 * Reads `data` of server-sent events that arrive in pieces. It keeps only its position in a line.
 * Data lines of one event are joined by a line feed.
 *
 * Source: WHATWG HTML, section 9.2.6, "Interpreting an event stream". Fields other than `data` are
 * ignored. An event that is cut off by the end of the stream is not discarded.
 */
export class SseReader {
  readonly #sink: EventSink;
  /** Number of bytes of the line so far, up to a few. 0 at its start. */
  #column = 0;
  #line: LineState = "name";
  #hasData = false;
  #isAfterReturn = false;
  /** Bytes read of a byte order mark at the start of the stream. Undefined after it. */
  #markLength: number | undefined = 0;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  push(bytes: Uint8Array): void {
    let i = this.#pastMark(bytes);
    const size = bytes.length;
    let nextFeed = -1;
    let nextReturn = -1;
    while (i < size) {
      if (this.#isAfterReturn) {
        this.#isAfterReturn = false;
        if (bytes[i] === lineFeed) {
          i += 1;
          continue;
        }
      }
      if (nextFeed < i) nextFeed = indexOrEnd(bytes, lineFeed, i);
      if (nextReturn < i) nextReturn = indexOrEnd(bytes, carriageReturn, i);
      const end = Math.min(nextFeed, nextReturn);
      this.#isAfterReturn = nextReturn < nextFeed;
      this.#part(bytes, i, end);
      if (end < size) this.#lineEnd();
      i = end + 1;
    }
  }

  /** Reads a part of a line, without its end. */
  #part(bytes: Uint8Array, from: number, to: number): void {
    let i = from;
    while (i < to && this.#line !== "data") {
      if (this.#line === "other") return;
      const byte = bytes[i] ?? 0;
      if (this.#line === "space") {
        this.#beginData();
        if (byte === space) i += 1;
      } else {
        this.#name(byte);
        i += 1;
      }
    }
    if (i < to) this.#sink.data(bytes, i, to);
  }

  /** Reads one byte of a field name. */
  #name(byte: number): void {
    if (this.#column === fieldName.length && byte === colon) this.#line = "space";
    else if (byte !== fieldName.charCodeAt(this.#column)) this.#line = "other";
    this.#column += 1;
  }

  #beginData(): void {
    if (this.#hasData) this.#sink.data(lineFeedBytes, 0, 1);
    this.#hasData = true;
    this.#line = "data";
  }

  #lineEnd(): void {
    // A line with only the name, or with nothing after its colon, is empty data.
    const isBareName = this.#line === "name" && this.#column === fieldName.length;
    if (this.#line === "space" || isBareName) this.#beginData();
    if (this.#line === "name" && this.#column === 0) {
      if (this.#hasData) this.#sink.eventEnd();
      this.#hasData = false;
    }
    this.#line = "name";
    this.#column = 0;
  }

  /** Skips a byte order mark. */
  #pastMark(bytes: Uint8Array): number {
    let i = 0;
    while (this.#markLength !== undefined && i < bytes.length) {
      if (bytes[i] !== mark[this.#markLength]) {
        // A partial mark is not a field name.
        if (this.#markLength > 0) this.#line = "other";
        this.#markLength = undefined;
        return i;
      }
      i += 1;
      this.#markLength = this.#markLength === mark.length - 1 ? undefined : this.#markLength + 1;
    }
    return i;
  }
}

const fieldName = "data";

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const colon = 0x3a;
const lineFeedBytes = Uint8Array.of(lineFeed);

/** U+FEFF in UTF-8. */
const mark: readonly number[] = [0xef, 0xbb, 0xbf];

/** Returns the next position of a byte, or the end if there is none. */
function indexOrEnd(bytes: Uint8Array, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at === -1 ? bytes.length : at;
}
