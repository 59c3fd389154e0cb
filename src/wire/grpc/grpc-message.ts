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

/**
 * Messages out of a body that comes in parts of any size. Source: gRPC over HTTP2,
 * "Length-Prefixed-Message".
 *
 * It keeps what was fed and not read: how much that may be is bound by who feeds it.
 */
export class MessageReader {
  #bytes: Uint8Array = new Uint8Array(initialBytes);
  #start = 0;
  #end = 0;
  #messageStart = 0;
  #messageEnd = 0;
  readonly #bytesMax: number;

  /** @param bytesMax the largest message */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
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
    let size = this.#bytes.length;
    while (size < unread + byteCount) size *= 2;
    const target = size === this.#bytes.length ? this.#bytes : new Uint8Array(size);
    target.set(this.#bytes.subarray(this.#start, this.#end));
    this.#bytes = target;
    this.#start = 0;
    this.#end = unread;
  }
}

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
