import type { EventSink } from "./sse-reader.js";

/** Maximum bytes of one message. With more, the stream does not have this format. */
export const amazonFrameBytesMax = 33_554_432;

/** Maximum bytes of the headers of one message. */
export const amazonHeaderBytesMax = 131_072;

const preludeBytes = 12;

/**
 * Reads the payloads of `application/vnd.amazon.eventstream`, whose messages arrive in pieces. It
 * keeps 12 bytes. A message consists of its length and that of its headers, a CRC of both, headers,
 * a payload and a CRC of everything. Lengths are big-endian.
 *
 * The first CRC is checked, since it shows whether the stream has this format. The one at the end
 * is not: the payload has been read by then, and HTTP delivers it over a checked connection.
 *
 * Source: Amazon's event stream encoding (Amazon Transcribe, "Event stream encoding").
 */
export class AmazonFrameReader {
  readonly #sink: EventSink;
  readonly #prelude = new Uint8Array(preludeBytes);
  #preludeLength = 0;
  #headerBytesLeft = 0;
  #payloadBytesLeft = 0;
  #checksumBytesLeft = 0;
  #isBroken = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  /** Whether the stream does not have this format. If so, nothing more is read. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  push(bytes: Uint8Array): void {
    let i = 0;
    while (i < bytes.length && !this.#isBroken) {
      if (this.#preludeLength < preludeBytes) {
        this.#prelude[this.#preludeLength] = bytes[i] ?? 0;
        this.#preludeLength += 1;
        i += 1;
        if (this.#preludeLength === preludeBytes) this.#begin();
      } else i = this.#rest(bytes, i);
    }
  }

  #begin(): void {
    const length = this.#number(0);
    const headerBytes = this.#number(4);
    const payloadBytes = length - headerBytes - preludeBytes - checksumBytes;
    this.#isBroken =
      length > amazonFrameBytesMax ||
      headerBytes > amazonHeaderBytesMax ||
      payloadBytes < 0 ||
      this.#number(8) !== crc32(this.#prelude, 8);
    this.#headerBytesLeft = headerBytes;
    this.#payloadBytesLeft = payloadBytes;
    this.#checksumBytesLeft = checksumBytes;
  }

  /** Reads what follows the prelude. @returns where to continue */
  #rest(bytes: Uint8Array, from: number): number {
    const left = bytes.length - from;
    const headerBytes = Math.min(left, this.#headerBytesLeft);
    if (headerBytes > 0) {
      this.#headerBytesLeft -= headerBytes;
      return from + headerBytes;
    }
    const payloadBytes = Math.min(left, this.#payloadBytesLeft);
    if (payloadBytes > 0) {
      this.#payloadBytesLeft -= payloadBytes;
      this.#sink.data(bytes, from, from + payloadBytes);
      return from + payloadBytes;
    }
    if (this.#checksumBytesLeft === checksumBytes) this.#sink.eventEnd();
    const passed = Math.min(left, this.#checksumBytesLeft);
    this.#checksumBytesLeft -= passed;
    if (this.#checksumBytesLeft === 0) this.#preludeLength = 0;
    return from + passed;
  }

  #number(at: number): number {
    let value = 0;
    for (let i = at; i < at + 4; i += 1) value = value * 256 + (this.#prelude[i] ?? 0);
    return value;
  }
}

const checksumBytes = 4;

/** Needs no table, since it covers only a few bytes. Source: RFC 1952, section 8. */
function crc32(bytes: Uint8Array, length: number): number {
  let crc = 0xffffffff;
  for (let i = 0; i < length; i += 1) {
    crc ^= bytes[i] ?? 0;
    for (let bit = 0; bit < 8; bit += 1)
      crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0xedb88320;
  }
  return ~crc >>> 0;
}
