/** Bytes of a message's head: one says whether it is compressed, and four are its length. */
export const messageHeadBytes = 5;

/** Result of `MessageReader.read`. Partial: no complete message yet; more bytes must come. */
type MessageRead = "message" | "partial" | MessageProblem;

/** Reason why nothing more can be read. */
export type MessageProblem =
  /** A message above the reader's maximum. */
  | "tooLarge"
  | "compressed"
  /** The flag says neither compressed nor uncompressed. */
  | "malformed";

/** Initial size of a reader's buffer, which grows to what a message needs. */
const initialBytes = 256;

/** Minimum size of a spare buffer, in bytes. */
const spareBytesMin = 65_536;

/** Maximum size of all spare buffers of a server together, in use or not, in bytes. */
export const sparesBytesMax = 8_388_608;

/**
 * Memory for messages that arrive in parts, which is reused: a thousand Envoys send 60 KB each per
 * second, and new memory for each of these messages caused most of the garbage collection.
 *
 * For servers whose handlers keep nothing of a message: its bytes change after `next` was called.
 */
export class SpareBuffers {
  readonly #waiting: Uint8Array[] = [];
  readonly #lent = new Set<Uint8Array>();
  #byteCount = 0;

  /** Returns memory with room for this many bytes. Undefined if none is spare. */
  take(byteCount: number): Uint8Array | undefined {
    const place = this.#waiting.findLastIndex((spare) => spare.length >= byteCount);
    const [spare] = place === -1 ? [] : this.#waiting.splice(place, 1);
    if (spare !== undefined) this.#lent.add(spare);
    return spare;
  }

  /** Takes memory that is no longer used, whether it came from here or not. */
  giveBack(bytes: Uint8Array): void {
    const isOurs = this.#lent.delete(bytes);
    if (!isOurs) {
      const byteCount = this.#byteCount + bytes.length;
      if (bytes.length < spareBytesMin || byteCount > sparesBytesMax) return;
      this.#byteCount = byteCount;
    }
    this.#waiting.push(bytes);
  }
}

/**
 * Extracts messages from a body that arrives in parts of any size. Source: gRPC over HTTP2,
 * "Length-Prefixed-Message".
 *
 * It keeps what was fed and not read. Its caller limits how much that may be.
 */
export class MessageReader {
  #bytes: Uint8Array = noBytes;
  #start = 0;
  #end = 0;
  #messageStart = 0;
  #messageEnd = 0;
  readonly #bytesMax: number;
  readonly #spares: SpareBuffers | undefined;

  /** @param bytesMax maximum size of a message */
  constructor(bytesMax: number, spares?: SpareBuffers) {
    this.#bytesMax = bytesMax;
    this.#spares = spares;
  }

  /** Ends it. Neither the rest nor the last message may be read any more. */
  close(): void {
    this.#spares?.giveBack(this.#bytes);
    this.#bytes = noBytes;
    this.#start = 0;
    this.#end = 0;
  }

  /** The message that `read` found, as a view that is valid until the next `feed`. */
  get message(): Uint8Array {
    return this.#bytes.subarray(this.#messageStart, this.#messageEnd);
  }

  /** Number of bytes that were fed and are in no message that was read. */
  get unreadBytes(): number {
    return this.#end - this.#start;
  }

  /** Adds a copy of the bytes. */
  feed(bytes: Uint8Array): void {
    this.#makeRoom(bytes.length);
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /** Looks for the next message. */
  read(): MessageRead {
    if (this.unreadBytes < messageHeadBytes) return "partial";
    const flag = this.#bytes[this.#start];
    if (flag !== 0) return flag === 1 ? "compressed" : "malformed";
    const length = messageLength(this.#bytes, this.#start);
    if (length > this.#bytesMax) return "tooLarge";
    if (this.unreadBytes < messageHeadBytes + length) return "partial";
    this.#messageStart = this.#start + messageHeadBytes;
    this.#messageEnd = this.#messageStart + length;
    this.#start = this.#messageEnd;
    return "message";
  }

  /** Moves unread bytes to the front, and doubles the buffer if that is not enough. */
  #makeRoom(byteCount: number): void {
    if (this.#end + byteCount <= this.#bytes.length) return;
    const unread = this.unreadBytes;
    const target = this.#roomFor(unread + byteCount);
    target.set(this.#bytes.subarray(this.#start, this.#end));
    if (target !== this.#bytes) this.#spares?.giveBack(this.#bytes);
    this.#bytes = target;
    this.#start = 0;
    this.#end = unread;
  }

  #roomFor(byteCount: number): Uint8Array {
    if (byteCount <= this.#bytes.length) return this.#bytes;
    let size = Math.max(initialBytes, this.#bytes.length);
    while (size < byteCount) size *= 2;
    return this.#spares?.take(size) ?? new Uint8Array(size);
  }
}

const noBytes = new Uint8Array(0);

/** Returns the length that a message's head states. */
export function messageLength(bytes: Uint8Array, headStart: number): number {
  const high = bytes[headStart + 1] ?? 0;
  const middle = ((bytes[headStart + 2] ?? 0) << 8) | (bytes[headStart + 3] ?? 0);
  return high * 0x1000000 + middle * 0x100 + (bytes[headStart + 4] ?? 0);
}

/** Reports whether the bytes are exactly one message, as nearly every request is. */
export function isOneMessage(body: Uint8Array, bytesMax: number): boolean {
  return (
    body.length >= messageHeadBytes &&
    body.length <= messageHeadBytes + bytesMax &&
    body[0] === 0 &&
    messageLength(body, 0) === body.length - messageHeadBytes
  );
}

/** Writes the head of a message that is not compressed. */
export function writeMessageHead(head: Uint8Array, byteCount: number): void {
  head[0] = 0;
  head[1] = byteCount >>> 24;
  head[2] = byteCount >>> 16;
  head[3] = byteCount >>> 8;
  head[4] = byteCount;
}
