import { frameFlags, framePayloadBytesMax, frameTypes, windowBytesMax } from "../base/frames.js";
import type { HeaderFields, SentField, ServerStream, StreamReader } from "../base/http2.js";
import { streamQueueBytesMax, streamWindowBytes } from "../base/http2-limits.js";
import type { OutputBuffer } from "../base/output-buffer.js";
import type { RowMember } from "./send-row.js";

/** What a stream requires of its connection. */
export interface StreamOwner {
  /** Bytes of a body that may leave now: the connection's window, and room in its output. */
  readonly bodyBytesFree: number;
  /** Output for frames. Whatever is written to it must be reported. */
  readonly output: OutputBuffer;
  writeHeaders(stream: Http2Stream, fields: readonly SentField[], isEnd: boolean): void;
  writeWindowUpdate(stream: Http2Stream, incrementBytes: number): void;
  /** Called when a DATA frame with this many bytes is in the output. */
  onSentData(byteCount: number): void;
  /** Called when this many more bytes wait in the stream. */
  onQueued(stream: Http2Stream, byteCount: number): void;
  /** Called when this many of the peer's bytes were read, or never will be. */
  onConsumed(byteCount: number): void;
  /** Called when the last frame of this side is written. */
  onSentEnd(stream: Http2Stream): void;
  /** Called when this side resets the stream. */
  onReset(stream: Http2Stream, errorCode: number): void;
  /** Called when the work for a stream that was reset has ended. */
  onReleased(): void;
  /** Called with what the stream's reader threw. */
  onBug(stream: Http2Stream, thrown: unknown): void;
}

/** How this side of a stream is to end, after its queue. */
type LocalEnd =
  | { readonly kind: "open" }
  | { readonly kind: "data" }
  | { readonly kind: "trailers"; readonly fields: readonly SentField[] };

const localOpen: LocalEnd = { kind: "open" };
const endsWithData: LocalEnd = { kind: "data" };
const noBytes = new Uint8Array(0);

/** Types and flags as `OutputBuffer.frameHead` takes them. */
const data = frameTypes.data << 8;
const dataAndEnd = data | frameFlags.endStream;

/**
 * A stream of one connection: its windows, what waits for them, and its reader. Its connection
 * decides what it writes and how it ends.
 *
 * A stream is open until the peer has ended, then half-closed (remote) until this side has. It is
 * never left half-closed (local): a peer that still sends after the answer is told to stop.
 *
 * Source: RFC 9113, sections 5.1 and 6.9.
 */
export class Http2Stream implements ServerStream, RowMember<Http2Stream> {
  readonly id: number;
  readonly #owner: StreamOwner;
  /** Set when the acceptor has returned. Before that, nothing is reported. */
  reader: StreamReader | undefined;
  /** Bytes that the peer accepts. Below 0 after it has lowered its setting. */
  sendWindowBytes: number;
  /** Bytes that the peer may still send. */
  #receiveWindowBytes = streamWindowBytes;
  /** Bytes that were received and not yet consumed. */
  #unconsumedBytes = 0;
  /** Bytes that were consumed and not yet reported to the peer. */
  #owedBytes = 0;
  /** Rest of `content-length`. Undefined without one. */
  #contentBytesLeft: number | undefined;
  /** Whether the peer has ended its side. */
  isRemoteEnd: boolean;
  /** Whether it is no longer a stream of the connection. */
  isGone = false;
  /** Whether it was reset while the work for it continues. */
  isLingering = false;
  /** Whether it is in the row of those that have something to send. */
  isScheduled = false;
  nextInRow: Http2Stream | undefined;
  previousInRow: Http2Stream | undefined;
  #localEnd = localOpen;
  /** Created when something has to wait, which is rare. */
  #queue: Uint8Array[] | undefined;
  /** Sent bytes of the first entry of the queue. */
  #queueOffset = 0;
  #queuedBytes = 0;
  #mustDrain = false;

  constructor(
    owner: StreamOwner,
    id: number,
    opening: {
      readonly sendWindowBytes: number;
      readonly contentLength: number | undefined;
      readonly isRemoteEnd: boolean;
    },
  ) {
    this.#owner = owner;
    this.id = id;
    this.sendWindowBytes = opening.sendWindowBytes;
    this.#contentBytesLeft = opening.contentLength;
    this.isRemoteEnd = opening.isRemoteEnd;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Whether the handler has sent everything. */
  get isAnswered(): boolean {
    return this.#localEnd.kind !== "open";
  }

  /** Received bytes that still count against the connection's window. */
  get unconsumedBytes(): number {
    return this.#unconsumedBytes;
  }

  /** Whether a body of the announced length has arrived. */
  get isBodyWhole(): boolean {
    return this.#contentBytesLeft === undefined || this.#contentBytesLeft === 0;
  }

  sendHeaders(fields: readonly SentField[], isEnd: boolean): void {
    if (this.isGone || this.isAnswered) return;
    if (this.#isWaiting) {
      // Only trailers may follow a body.
      if (isEnd) this.#localEnd = { kind: "trailers", fields };
      return;
    }
    if (isEnd) this.#localEnd = endsWithData;
    this.#owner.writeHeaders(this, fields, isEnd);
    if (isEnd) this.#owner.onSentEnd(this);
  }

  sendData(bytes: Uint8Array, isEnd: boolean): boolean {
    return this.sendDataWithHead(noBytes, bytes, isEnd);
  }

  sendDataWithHead(head: Uint8Array, bytes: Uint8Array, isEnd: boolean): boolean {
    if (this.isGone || this.isAnswered) return true;
    const byteCount = head.length + bytes.length;
    if (byteCount === 0 && !isEnd) return !this.#mustDrain;
    if (isEnd) this.#localEnd = endsWithData;
    if (!this.#isWaiting && byteCount <= this.#bytesFree()) {
      const { output } = this.#owner;
      output.frameHead(byteCount, isEnd ? dataAndEnd : data, this.id);
      output.bytes(head);
      output.bytes(bytes);
      this.sendWindowBytes -= byteCount;
      this.#owner.onSentData(byteCount);
      if (isEnd) this.#owner.onSentEnd(this);
      return true;
    }
    return this.#enqueue(head, bytes);
  }

  consumed(byteCount: number): void {
    if (this.isGone) return;
    const given = Math.min(byteCount, this.#unconsumedBytes);
    this.#unconsumedBytes -= given;
    this.#owner.onConsumed(given);
    if (this.isRemoteEnd) return;
    this.#owedBytes += given;
    if (this.#owedBytes < streamWindowBytes / 2) return;
    this.#receiveWindowBytes += this.#owedBytes;
    this.#owner.writeWindowUpdate(this, this.#owedBytes);
    this.#owedBytes = 0;
  }

  reset(errorCode: number): void {
    if (this.isGone) return;
    this.#localEnd = endsWithData;
    this.#owner.onReset(this, errorCode);
  }

  release(): void {
    if (!this.isLingering) return;
    this.isLingering = false;
    this.#owner.onReleased();
  }

  /** Charges bytes to what the peer may send. Returns whether it was allowed to send them. */
  receive(byteCount: number): boolean {
    this.#receiveWindowBytes -= byteCount;
    this.#unconsumedBytes += byteCount;
    return this.#receiveWindowBytes >= 0;
  }

  /** Takes a part of the body. Returns whether `content-length` allows it. */
  receiveBody(byteCount: number): boolean {
    if (this.#contentBytesLeft === undefined) return true;
    this.#contentBytesLeft -= byteCount;
    return this.#contentBytesLeft >= 0;
  }

  /** Changes what the peer accepts, also to less. Returns whether the window is valid (6.9.1). */
  addSendWindow(byteCount: number): boolean {
    this.sendWindowBytes += byteCount;
    return this.sendWindowBytes <= windowBytesMax;
  }

  /** Whether something waits that the stream's own window allows. */
  get isReady(): boolean {
    return this.#isWaiting && this.sendWindowBytes > 0;
  }

  /** Sends one frame of what waits. Returns how many bytes of the queue left with it. */
  sendQueued(): number {
    const queue = this.#queue;
    const bytes = queue?.[0];
    if (queue === undefined || bytes === undefined) return 0;
    const start = this.#queueOffset;
    const left = bytes.length - start;
    const sent = Math.min(left, this.#bytesFree());
    if (sent === 0 && left > 0) return 0;
    const isLast = sent === left && queue.length === 1;
    const isEnd = isLast && this.#localEnd.kind === "data";
    const { output } = this.#owner;
    output.frameHead(sent, isEnd ? dataAndEnd : data, this.id);
    output.slice(bytes, start, start + sent);
    this.#queueOffset += sent;
    if (sent === left) {
      queue.shift();
      this.#queueOffset = 0;
    }
    this.#queuedBytes -= sent;
    this.sendWindowBytes -= sent;
    this.#owner.onSentData(sent);
    if (isLast && this.#localEnd.kind === "trailers") {
      this.#owner.writeHeaders(this, this.#localEnd.fields, true);
    }
    if (isLast && this.isAnswered) this.#owner.onSentEnd(this);
    else this.#tellDrain();
    return sent;
  }

  /** Removes it from the connection, and drops what waits. Returns how many bytes. */
  drop(): number {
    const dropped = this.#queuedBytes;
    this.isGone = true;
    this.#queue = undefined;
    this.#queuedBytes = 0;
    return dropped;
  }

  /** Passes a part of the body to its reader. */
  tellData(bytes: Uint8Array, isEnd: boolean): void {
    try {
      this.reader?.onData(bytes, isEnd);
    } catch (thrown) {
      this.#owner.onBug(this, thrown);
    }
  }

  /** Reports the end without a last part to its reader. */
  tellEnd(trailers: HeaderFields | undefined): void {
    try {
      this.reader?.onEnd(trailers);
    } catch (thrown) {
      this.#owner.onBug(this, thrown);
    }
  }

  /** Reports a reset from elsewhere to its reader. */
  tellReset(): void {
    try {
      this.reader?.onReset();
    } catch (thrown) {
      this.release();
      this.#owner.onBug(this, thrown);
    }
  }

  #tellDrain(): void {
    if (!this.#mustDrain || this.#queuedBytes > streamQueueBytesMax / 2) return;
    this.#mustDrain = false;
    try {
      this.reader?.onDrain();
    } catch (thrown) {
      this.#owner.onBug(this, thrown);
    }
  }

  get #isWaiting(): boolean {
    return this.#queue !== undefined && this.#queue.length > 0;
  }

  #bytesFree(): number {
    const windowBytes = Math.min(this.sendWindowBytes, this.#owner.bodyBytesFree);
    return Math.max(0, Math.min(windowBytes, framePayloadBytesMax));
  }

  #enqueue(head: Uint8Array, bytes: Uint8Array): boolean {
    this.#queue ??= [];
    // Not slice(), which does not copy a Buffer.
    if (head.length > 0) this.#queue.push(new Uint8Array(head));
    if (bytes.length > 0) this.#queue.push(bytes);
    const byteCount = head.length + bytes.length;
    this.#queuedBytes += byteCount;
    if (this.#queuedBytes >= streamQueueBytesMax) this.#mustDrain = true;
    const isFull = this.#mustDrain;
    this.#owner.onQueued(this, byteCount);
    return !isFull;
  }
}
