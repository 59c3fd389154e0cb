import {
  frameFlags,
  framePayloadBytesMax,
  frameTypes,
  initialWindowBytes,
  windowBytesMax,
} from "../base/frames.js";
import type { HeaderFields, SentField, StreamAcceptor } from "../base/http2.js";
import { type Http2ErrorCode, http2ErrorCodes } from "../base/http2-error.js";
import {
  connectionQueueBytesMax,
  connectionWindowBytes,
  endedStreamsKeptMax,
  outputBytesMax,
  resetStreamsKeptMax,
  streamCountMax,
} from "../base/http2-limits.js";
import type { OutputBuffer } from "../base/output-buffer.js";
import type { HpackEncoder } from "../hpack/hpack-encoder.js";
import type { FrameRates } from "./frame-rates.js";
import type { FrameWriter } from "./frame-writer.js";
import { Http2Stream, type StreamOwner } from "./http2-stream.js";
import { SendRow } from "./send-row.js";
import { StreamMap } from "./stream-map.js";

/** What the streams of a connection use. */
interface StreamTableParts {
  readonly writer: FrameWriter;
  readonly encoder: HpackEncoder;
  readonly rates: FrameRates;
  readonly acceptor: StreamAcceptor;
  readonly host: StreamHost;
}

/** What streams require of their connection. */
export interface StreamHost {
  /** Called when there is, or may be, something to write to the socket. */
  requestFlush(): void;
  /** Ends the connection, which cannot go on. It ends before this returns. */
  fail(code: Http2ErrorCode): void;
  /** Called when a stream was reset because the peer broke a rule or exceeded a limit. */
  onStreamError(code: Http2ErrorCode): void;
  /** Called with what a stream's reader threw. */
  onBug(thrown: unknown): void;
  /** Called when the last open stream is gone. */
  onNoStreams(): void;
}

/** What a request's first header block says about its stream. */
interface Opening {
  readonly isRemoteEnd: boolean;
  readonly contentLength: number | undefined;
}

/**
 * The streams of one connection: which are open, which were, and what they may send. A stream that
 * was reset counts as open until the work for it has ended, so resets buy no more work than the
 * limit of open streams.
 *
 * Source: RFC 9113, sections 5.1, 5.1.2 and 5.2.
 */
export class StreamTable implements StreamOwner {
  readonly output: OutputBuffer;
  readonly #parts: StreamTableParts;
  readonly #streams = new StreamMap<Http2Stream>();
  readonly #closed = new ClosedStreams();
  readonly #row = new SendRow<Http2Stream>();
  #lastId = 0;
  #lingeringCount = 0;
  #queuedBytes = 0;
  #sentCount = 0;
  #sendWindowBytes: number = initialWindowBytes;
  #receiveWindowBytes = connectionWindowBytes;
  #owedBytes = 0;

  constructor(parts: StreamTableParts) {
    this.#parts = parts;
    this.output = parts.writer.output;
  }

  /** The highest stream that the peer has opened; 0 before the first. */
  get lastId(): number {
    return this.#lastId;
  }

  /** Number of streams that are open or half-closed. */
  get count(): number {
    return this.#streams.size;
  }

  /** Number of streams that were reset while the work for them continues. */
  get lingeringCount(): number {
    return this.#lingeringCount;
  }

  /** Bytes of all streams that wait for the peer. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Number of streams whose bodies wait for the connection, not for their own window. */
  get waitingCount(): number {
    return this.#row.count;
  }

  /** Number of DATA frames so far. It does not change while the peer takes nothing. */
  get sentCount(): number {
    return this.#sentCount;
  }

  /** Returns a stream that is not closed. */
  find(id: number): Http2Stream | undefined {
    return this.#streams.get(id);
  }

  /** Reports whether the peer has neither opened a stream nor skipped it. */
  isIdle(id: number): boolean {
    return (id & 1) === 0 || id > this.#lastId;
  }

  /** Returns how a stream ended that is neither open nor idle. */
  findClosed(id: number): "ended" | "reset" | "unknown" {
    return this.#closed.find(id);
  }

  /** Whether one more stream may be open. */
  get hasRoom(): boolean {
    return this.#streams.size + this.#lingeringCount < streamCountMax;
  }

  /** Notes that the peer has opened a stream, whatever becomes of it. */
  pass(id: number): void {
    this.#lastId = id;
  }

  /** Passes a request to the acceptor. */
  open(id: number, fields: HeaderFields, opening: Opening & PeerWindow): void {
    const stream = new Http2Stream(this, id, opening);
    this.#streams.add(stream);
    const { isRemoteEnd } = opening;
    try {
      stream.reader = this.#parts.acceptor.onStream(stream, fields, isRemoteEnd);
    } catch (thrown) {
      this.onBug(stream, thrown);
    }
    if (isRemoteEnd && !stream.isGone) stream.tellEnd(undefined);
    // The connection ended while the acceptor ran: the reader is known only now.
    if (stream.isLingering) stream.tellReset();
  }

  /** Refuses a request before it has a stream. Returns whether the peer may go on like this. */
  refuse(id: number, code: Http2ErrorCode, isRemoteEnd: boolean): boolean {
    this.#parts.writer.rstStream(id, code);
    if (isRemoteEnd) this.#closed.addEnded(id);
    else this.#closed.addReset(id);
    return this.#countError(code);
  }

  /** Resets a stream on which a rule was broken. Returns whether the peer may go on like this. */
  resetByRule(stream: Http2Stream, code: Http2ErrorCode): boolean {
    this.#parts.writer.rstStream(stream.id, code);
    this.#remove(stream, !stream.isRemoteEnd);
    this.#linger(stream);
    return this.#countError(code);
  }

  /** Ends a stream that the peer has reset. */
  endByPeer(stream: Http2Stream): void {
    this.#remove(stream, false);
    this.#linger(stream);
  }

  /** Ends every stream, because the connection is gone. */
  endAll(): void {
    const streams = this.#streams.inOrder();
    this.#streams.clear();
    this.#queuedBytes = 0;
    for (const stream of streams) {
      stream.drop();
      this.#row.remove(stream);
    }
    for (const stream of streams) this.#linger(stream);
  }

  /** Charges bytes to what the peer may send. Returns whether it was allowed to send them. */
  receive(byteCount: number): boolean {
    this.#receiveWindowBytes -= byteCount;
    return this.#receiveWindowBytes >= 0;
  }

  /** Adds to what the peer accepts on all streams. Returns whether the window is valid (6.9.1). */
  addSendWindow(byteCount: number): boolean {
    this.#sendWindowBytes += byteCount;
    return this.#sendWindowBytes <= windowBytesMax;
  }

  /** Adds to what the peer accepts on one stream. Returns whether the window is valid (6.9.1). */
  addStreamWindow(stream: Http2Stream, byteCount: number): boolean {
    if (!stream.addSendWindow(byteCount)) return false;
    this.#row.add(stream);
    return true;
  }

  /** Applies a change of the peer's setting. Returns whether every window is valid (6.9.2). */
  shiftStreamWindows(byteCount: number): boolean {
    for (const stream of this.#streams.inOrder()) {
      if (!this.addStreamWindow(stream, byteCount)) return false;
    }
    return true;
  }

  /** Writes what waits, as far as windows and output have room: one frame per stream, in turns. */
  pump(): void {
    while (this.bodyBytesFree > 0) {
      const stream = this.#row.take();
      if (stream === undefined) return;
      this.#queuedBytes -= stream.sendQueued();
      this.#row.add(stream);
    }
  }

  get bodyBytesFree(): number {
    return Math.min(this.#sendWindowBytes, outputBytesMax - this.output.length);
  }

  writeHeaders(stream: Http2Stream, fields: readonly SentField[], isEnd: boolean): void {
    const { writer, encoder, rates, host } = this.#parts;
    writer.begin(frameTypes.headers, isEnd ? frameFlags.endStream : 0, stream.id);
    const startBytes = this.output.length;
    try {
      encoder.encode(fields, this.output);
    } catch (thrown) {
      // Fields that may not be sent are a bug of their sender, and cost only their stream. A block
      // that has begun may have changed the table, so that peer and encoder differ.
      const hasBegun = this.output.length > startBytes;
      writer.cancel();
      this.onBug(stream, thrown);
      if (hasBegun) host.fail(http2ErrorCodes.internalError);
      return;
    }
    writer.endHeaders(stream.id, framePayloadBytesMax);
    rates.onSentFrame();
    host.requestFlush();
  }

  writeWindowUpdate(stream: Http2Stream, incrementBytes: number): void {
    this.#parts.writer.windowUpdate(stream.id, incrementBytes);
    this.#parts.host.requestFlush();
  }

  onSentData(byteCount: number): void {
    this.#sendWindowBytes -= byteCount;
    this.#sentCount += 1;
    this.#parts.rates.onSentFrame();
    this.#parts.host.requestFlush();
  }

  onQueued(stream: Http2Stream, byteCount: number): void {
    this.#queuedBytes += byteCount;
    if (this.#queuedBytes > connectionQueueBytesMax) {
      this.#parts.host.fail(http2ErrorCodes.enhanceYourCalm);
      return;
    }
    this.#row.add(stream);
    this.#parts.host.requestFlush();
  }

  onConsumed(byteCount: number): void {
    this.#owedBytes += byteCount;
    if (this.#owedBytes < connectionWindowBytes / 2) return;
    this.#receiveWindowBytes += this.#owedBytes;
    this.#parts.writer.windowUpdate(0, this.#owedBytes);
    this.#owedBytes = 0;
    this.#parts.host.requestFlush();
  }

  onSentEnd(stream: Http2Stream): void {
    if (stream.isGone) return;
    const isOpen = !stream.isRemoteEnd;
    // The answer is complete: nothing reads what the peer still sends (section 8.1).
    if (isOpen) this.#parts.writer.rstStream(stream.id, http2ErrorCodes.noError);
    this.#remove(stream, isOpen);
  }

  onReset(stream: Http2Stream, errorCode: number): void {
    this.#parts.writer.rstStream(stream.id, errorCode);
    this.#remove(stream, !stream.isRemoteEnd);
    this.#parts.host.requestFlush();
  }

  onReleased(): void {
    this.#lingeringCount -= 1;
  }

  onBug(stream: Http2Stream, thrown: unknown): void {
    this.#parts.host.onBug(thrown);
    stream.reset(http2ErrorCodes.internalError);
  }

  /** Reports a reset. The stream counts as open until the work for it has ended. */
  #linger(stream: Http2Stream): void {
    if (!stream.isAnswered) {
      stream.isLingering = true;
      this.#lingeringCount += 1;
    }
    stream.tellReset();
  }

  #remove(stream: Http2Stream, isReset: boolean): void {
    if (!this.#streams.delete(stream.id)) return;
    const unread = stream.unconsumedBytes;
    this.#queuedBytes -= stream.drop();
    this.#row.remove(stream);
    if (isReset) this.#closed.addReset(stream.id);
    else this.#closed.addEnded(stream.id);
    if (unread > 0) this.onConsumed(unread);
    if (this.#streams.size === 0) this.#parts.host.onNoStreams();
  }

  #countError(code: Http2ErrorCode): boolean {
    this.#parts.host.onStreamError(code);
    return this.#parts.rates.takeProvokedReset();
  }
}

/** SETTINGS_INITIAL_WINDOW_SIZE of the peer. */
interface PeerWindow {
  readonly sendWindowBytes: number;
}

/** How a stream ended, as far as it is still known. */
type ClosedStream = "ended" | "reset" | "unknown";

/**
 * Remembers the streams that ended last, in two rings: those that this side reset, whose frames may
 * still be in transit, and the others, on which nothing may come any more.
 *
 * Source: RFC 9113, section 5.1, "closed".
 */
class ClosedStreams {
  readonly #ended = new Int32Array(endedStreamsKeptMax);
  readonly #reset = new Int32Array(resetStreamsKeptMax);
  #endedNext = 0;
  #resetNext = 0;

  /** Notes that the peer has ended or reset it. */
  addEnded(id: number): void {
    this.#ended[this.#endedNext] = id;
    this.#endedNext = (this.#endedNext + 1) % endedStreamsKeptMax;
  }

  /** Notes that this side reset it before the peer had ended. */
  addReset(id: number): void {
    this.#reset[this.#resetNext] = id;
    this.#resetNext = (this.#resetNext + 1) % resetStreamsKeptMax;
  }

  /** Searches both rings: for frames on a stream that is not open, which are rare. */
  find(id: number): ClosedStream {
    if (this.#reset.includes(id)) return "reset";
    return this.#ended.includes(id) ? "ended" : "unknown";
  }
}
