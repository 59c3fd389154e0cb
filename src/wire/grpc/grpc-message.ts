/** A byte that says whether a message is compressed, and four of its length. */
export const messageHeadBytes = 5;

/** What `MessageReader.read` found. Partial: nothing or a part; more bytes must come. */
type MessageRead = "message" | "partial" | MessageProblem;

/** Why nothing more can be read. */
export type MessageProblem =
  /** A message above the reader's bound. */
  | "tooLarge"
  | "compressed"
  /** Neither compressed nor not compressed. */
  | "malformed";

/** What a reader begins with; it grows to what a message needs. */
const initialBytes = 256;

/** Bytes of a spare buffer, at least. */
const spareBytesMin = 65_536;

/** Bytes of all spare buffers of a server, at most: of those in use, and of those that wait. */
export const sparesBytesMax = 8_388_608;

/**
 * Memory for messages that come in parts, used again and again: a thousand Envoys send 60 KB each
 * second, and new memory for each of these messages was most of what the collector ran for.
 *
 * For servers whose handlers keep nothing of a message: its bytes change once `next` was called.
 */
export class SpareBuffers {
  readonly #waiting: Uint8Array[] = [];
  readonly #lent = new Set<Uint8Array>();
  #byteCount = 0;

  /** Memory with room for so many bytes; undefined: none is spare. */
  take(byteCount: number): Uint8Array | undefined {
    const place = this.#waiting.findLastIndex((spare) => spare.length >= byteCount);
    const [spare] = place === -1 ? [] : this.#waiting.splice(place, 1);
    if (spare !== undefined) this.#lent.add(spare);
    return spare;
  }

  /** Nobody uses it any more, whether it came from here or not. */
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
 * Messages out of a body that comes in parts of any size. Source: gRPC over HTTP2,
 * "Length-Prefixed-Message".
 *
 * It keeps what was fed and not read: how much that may be is bound by who feeds it.
 */
export class MessageReader {
  #bytes: Uint8Array = noBytes;
  #start = 0;
  #end = 0;
  #messageStart = 0;
  #messageEnd = 0;
  readonly #bytesMax: number;
  readonly #spares: SpareBuffers | undefined;

  /** @param bytesMax the largest message */
  constructor(bytesMax: number, spares?: SpareBuffers) {
    this.#bytesMax = bytesMax;
    this.#spares = spares;
  }

  /** Ends it: nobody reads any more, neither what is left nor the last message. */
  close(): void {
    this.#spares?.giveBack(this.#bytes);
    this.#bytes = noBytes;
    this.#start = 0;
    this.#end = 0;
  }

  /** The message that `read` found; a view that holds until the next `feed`. */
  get message(): Uint8Array {
    return this.#bytes.subarray(this.#messageStart, this.#messageEnd);
  }

  /** Bytes that were fed and are in no message that was read. */
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

  /** Moves what is unread to the front, and doubles where that is not enough. */
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

/** The length that a message's head states. */
export function messageLength(bytes: Uint8Array, headStart: number): number {
  const high = bytes[headStart + 1] ?? 0;
  const middle = ((bytes[headStart + 2] ?? 0) << 8) | (bytes[headStart + 3] ?? 0);
  return high * 0x1000000 + middle * 0x100 + (bytes[headStart + 4] ?? 0);
}

/** Whether bytes are one whole message, as nearly every request is. */
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
