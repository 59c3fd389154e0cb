import {
  frameFlags,
  frameTypes,
  initialTableBytes,
  initialWindowBytes,
  settingIds,
  streamIdMax,
} from "../base/frames.js";
import type { HeaderFields, StreamAcceptor } from "../base/http2.js";
import { connectionError, type Http2ErrorCode, http2ErrorCodes } from "../base/http2-error.js";
import { connectionWindowBytes, streamCountMax, streamWindowBytes } from "../base/http2-limits.js";
import { OutputBuffer, type OutputSlabs } from "../base/output-buffer.js";
import { HeaderBlock } from "../hpack/header-block.js";
import { HpackDecoder, headerFieldsMax, headerListBytesMax } from "../hpack/hpack-decoder.js";
import { HpackEncoder } from "../hpack/hpack-encoder.js";
import { FrameRates } from "./frame-rates.js";
import { type Frame, FrameReader, type FrameSink } from "./frame-reader.js";
import {
  broken,
  calm,
  closedBroken,
  dependencyAt,
  flowBroken,
  priorityBytes,
  sizeBroken,
  unpaddedEnd,
} from "./frame-rules.js";
import { FrameWriter } from "./frame-writer.js";
import type { Http2Stream } from "./http2-stream.js";
import { PeerSettings } from "./peer-settings.js";
import { areTrailersValid, checkRequest, type RequestCheck } from "./request-fields.js";
import { type StreamHost, StreamTable } from "./stream-table.js";

/** What a session requires of the connection that carries its bytes. */
export interface SessionHost extends StreamHost {
  /** Called when the peer knows that it should open no more streams, and which are served. */
  onLeaveKnown(): void;
}

/** State of a graceful shutdown. */
type Leaving = "no" | "asked" | "known";

/** Content of a PING from this side: which question the peer answers. */
const keepalivePing = 1;
const leavePing = 2;

/**
 * The server's side of one HTTP/2 connection, from bytes to bytes: it reads frames, opens and ends
 * streams and writes frames into `output`. Its host provides the socket and the time.
 *
 * Source: RFC 9113.
 */
export class Http2Session implements FrameSink {
  readonly output: OutputBuffer;
  readonly #host: SessionHost;
  readonly #writer: FrameWriter;
  readonly #reader = FrameReader.ofClient(this);
  readonly #rates = new FrameRates();
  readonly #block = new HeaderBlock();
  readonly #decoder = new HpackDecoder({
    tableBytesMax: initialTableBytes,
    listBytesMax: headerListBytesMax,
    fieldCountMax: headerFieldsMax,
  });
  readonly #settings: PeerSettings;
  readonly #streams: StreamTable;
  #hasSettings = false;
  #endedCount = 0;
  #leaving: Leaving = "no";
  #isPeerLeaving = false;
  /** Calls of one proxy begin with the same block, so the result of its check is reused. */
  #checkedFields: HeaderFields | undefined;
  #check: RequestCheck = { kind: "malformed" };

  constructor(acceptor: StreamAcceptor, host: SessionHost, slabs?: OutputSlabs) {
    this.#host = host;
    this.output = new OutputBuffer(slabs);
    const encoder = new HpackEncoder();
    this.#settings = new PeerSettings(encoder);
    const writer = new FrameWriter(this.output);
    this.#writer = writer;
    this.#streams = new StreamTable({ writer, encoder, rates: this.#rates, acceptor, host });
    writer.settings([
      [settingIds.maxConcurrentStreams, streamCountMax],
      [settingIds.initialWindowSize, streamWindowBytes],
      [settingIds.maxHeaderListSize, headerListBytesMax],
    ]);
    writer.windowUpdate(0, connectionWindowBytes - initialWindowBytes);
  }

  /** The streams, for counters. */
  get streams(): Pick<StreamTable, "count" | "lingeringCount" | "queuedBytes" | "sentCount"> {
    return this.#streams;
  }

  /** Whether the peer knows that this side leaves, and the last stream that is served. */
  get isLeaveKnown(): boolean {
    return this.#leaving === "known";
  }

  /** Whether the peer has sent its preface and its first SETTINGS frame. */
  get isGreeted(): boolean {
    return this.#hasSettings;
  }

  /** Bytes of incomplete frames and header blocks, and of output that was not taken. */
  get keptBytes(): number {
    const cameBytes = this.#reader.heldBytes + this.#block.byteCount;
    return cameBytes + this.#streams.queuedBytes + this.output.length;
  }

  /** Whether a frame or a header block is incomplete. */
  get isInside(): boolean {
    return this.#block.streamId !== 0 || this.#reader.heldBytes > 0;
  }

  /** Number of complete frames and header blocks. */
  get endedCount(): number {
    return this.#endedCount;
  }

  /** Whether one side has announced the end of the connection, and no stream is left. */
  get isDone(): boolean {
    return (this.#leaving === "known" || this.#isPeerLeaving) && this.#streams.count === 0;
  }

  /**
   * Reads received bytes.
   *
   * @param nowMs the monotonic time
   * @throws Http2Error of the connection, which must end with its code
   */
  receive(chunk: Buffer, nowMs: number): void {
    this.#rates.at(nowMs);
    this.#reader.read(chunk);
  }

  /** Moves waiting bodies into the output, as far as the peer takes them. */
  pump(): void {
    this.#streams.pump();
  }

  /** Asks whether the peer is still there. Any byte from it is an answer. */
  askAlive(): void {
    this.#writer.ping(0, keepalivePing);
  }

  /**
   * Asks the peer to open no more streams. Those in transit are served: the peer is told the last
   * served stream only after it has answered a PING that follows. Source: section 6.8.
   */
  askToLeave(): void {
    if (this.#leaving !== "no") return;
    this.#leaving = "asked";
    this.#writer.goaway(streamIdMax, http2ErrorCodes.noError);
    this.#writer.ping(0, leavePing);
  }

  /** Ends the wait for that answer. */
  closeToStreams(): void {
    if (this.#leaving === "known") return;
    this.#leaving = "known";
    this.#writer.goaway(this.#streams.lastId, http2ErrorCodes.noError);
    this.#host.onLeaveKnown();
  }

  /** Sends the last frame: no frame is read after it, and every stream is gone. */
  end(code: Http2ErrorCode): void {
    this.#reader.stop();
    this.#writer.goaway(this.#streams.lastId, code);
    this.#streams.endAll();
  }

  /** Ends all streams, because the connection is gone. */
  abandon(): void {
    this.#reader.stop();
    this.#streams.endAll();
  }

  onFrame(frame: Frame): void {
    if (!this.#hasSettings) this.#checkGreeting(frame);
    this.#dispatch(frame);
    if (this.#block.streamId === 0) this.#endedCount += 1;
  }

  #dispatch(frame: Frame): void {
    const { type } = frame;
    const block = this.#block;
    if (block.streamId !== 0) {
      if (type !== frameTypes.continuation || frame.streamId !== block.streamId) {
        throw broken("a header block is interrupted");
      }
      this.#onContinuation(frame);
      return;
    }
    switch (type) {
      case frameTypes.data:
        this.#onData(frame);
        return;
      case frameTypes.headers:
        this.#onHeaders(frame);
        return;
      case frameTypes.priority:
        this.#onPriority(frame);
        return;
      case frameTypes.rstStream:
        this.#onRstStream(frame);
        return;
      case frameTypes.settings:
        this.#onSettings(frame);
        return;
      case frameTypes.ping:
        this.#onPing(frame);
        return;
      case frameTypes.goaway:
        this.#onGoaway(frame);
        return;
      case frameTypes.windowUpdate:
        this.#onWindowUpdate(frame);
        return;
      case frameTypes.pushPromise:
        throw broken("a client must not send PUSH_PROMISE");
      case frameTypes.continuation:
        throw broken("CONTINUATION without a header block");
      default:
        calm(this.#rates.takeIgnored(), "unknown frames");
    }
  }

  /** Source: section 3.4. */
  #checkGreeting({ type, flags }: Frame): void {
    if (type !== frameTypes.settings || (flags & frameFlags.ack) !== 0) {
      throw broken("the first frame is not SETTINGS");
    }
    this.#hasSettings = true;
  }

  /** Source: section 6.1. */
  #onData(frame: Frame): void {
    const { streamId, flags, bytes, start } = frame;
    const isPadded = (flags & frameFlags.padded) !== 0;
    const from = isPadded ? start + 1 : start;
    const to = isPadded ? unpaddedEnd(frame) : frame.end;
    if (to < from) throw broken("the padding is longer than its frame");
    const byteCount = frame.end - start;
    if (!this.#streams.receive(byteCount)) throw flowBroken("the connection's window is passed");
    const stream = this.#streams.find(streamId);
    if (stream === undefined || stream.isRemoteEnd) {
      this.#streams.onConsumed(byteCount);
      this.#onClosed(streamId, stream);
      return;
    }
    const isEnd = (flags & frameFlags.endStream) !== 0;
    if (!stream.receive(byteCount)) {
      this.#resetByRule(stream, http2ErrorCodes.flowControlError);
      return;
    }
    if (isPadded) stream.consumed(byteCount - (to - from));
    if (!stream.receiveBody(to - from) || (isEnd && !stream.isBodyWhole)) {
      this.#resetByRule(stream, http2ErrorCodes.protocolError);
      return;
    }
    stream.isRemoteEnd = isEnd;
    if (to > from) stream.tellData(bytes.subarray(from, to), isEnd);
    else if (isEnd) stream.tellEnd(undefined);
    else calm(this.#rates.takeEmptyData(), "empty DATA frames");
  }

  /** DATA for a stream on which the peer has ended, or that is closed. Source: section 5.1. */
  #onClosed(streamId: number, stream: Http2Stream | undefined): void {
    if (stream !== undefined) {
      this.#resetByRule(stream, http2ErrorCodes.streamClosed);
      return;
    }
    if (this.#streams.isIdle(streamId)) throw broken("DATA for a stream that is idle");
    if (this.#streams.findClosed(streamId) !== "reset") throw closedBroken();
  }

  /** Source: section 6.2. */
  #onHeaders(frame: Frame): void {
    const { streamId, flags, bytes, start } = frame;
    if ((streamId & 1) === 0) throw broken("a client's streams have odd numbers");
    const isPadded = (flags & frameFlags.padded) !== 0;
    let from = isPadded ? start + 1 : start;
    const to = isPadded ? unpaddedEnd(frame) : frame.end;
    let isSelfDependent = false;
    if ((flags & frameFlags.priority) !== 0) {
      if (frame.end - from < priorityBytes) throw sizeBroken("HEADERS has an incomplete priority");
      isSelfDependent = dependencyAt(bytes, from) === streamId;
      from += priorityBytes;
    }
    if (to < from) throw broken("the padding is longer than its frame");
    this.#block.begin(streamId, (flags & frameFlags.endStream) !== 0, isSelfDependent);
    if ((flags & frameFlags.endHeaders) !== 0) this.#onBlock(bytes, from, to);
    else calm(this.#block.append(bytes, from, to), "a header block");
  }

  /** Source: section 6.10. */
  #onContinuation({ flags, bytes, start, end }: Frame): void {
    const block = this.#block;
    calm(block.countContinuation(), "CONTINUATION frames");
    calm(block.append(bytes, start, end), "a header block");
    if ((flags & frameFlags.endHeaders) !== 0) this.#onBlock(block.bytes, 0, block.byteCount);
  }

  /** Handles a complete header block. It is always decoded, or the table would be lost. */
  #onBlock(bytes: Buffer, start: number, end: number): void {
    const { streamId, isEndStream, isSelfDependent } = this.#block;
    this.#block.close();
    const fields = this.#decoder.decode(bytes, start, end);
    const stream = this.#streams.find(streamId);
    if (stream !== undefined) {
      this.#onTrailers(stream, fields, isEndStream);
      return;
    }
    if (!this.#streams.isIdle(streamId)) {
      const closed = this.#streams.findClosed(streamId);
      if (closed === "unknown") throw broken("stream identifiers must increase");
      if (closed === "ended") throw closedBroken();
      return;
    }
    this.#streams.pass(streamId);
    const code = isSelfDependent
      ? http2ErrorCodes.protocolError
      : this.#open(streamId, fields, isEndStream);
    if (code === undefined) return;
    calm(this.#streams.refuse(streamId, code, isEndStream), "refused requests");
  }

  /** Opens a stream. Returns an error code if the stream is refused. */
  #open(
    id: number,
    fields: HeaderFields | undefined,
    isRemoteEnd: boolean,
  ): Http2ErrorCode | undefined {
    if (this.#leaving === "known" || !this.#streams.hasRoom) return http2ErrorCodes.refusedStream;
    if (fields === undefined) return http2ErrorCodes.enhanceYourCalm;
    const check = this.#checkOnce(fields);
    if (check.kind === "malformed") return http2ErrorCodes.protocolError;
    const { contentLength } = check;
    if (isRemoteEnd && contentLength !== undefined && contentLength > 0) {
      return http2ErrorCodes.protocolError;
    }
    const sendWindowBytes = this.#settings.windowBytes;
    this.#streams.open(id, fields, { isRemoteEnd, contentLength, sendWindowBytes });
    return undefined;
  }

  #checkOnce(fields: HeaderFields): RequestCheck {
    if (fields !== this.#checkedFields) {
      this.#check = checkRequest(fields);
      this.#checkedFields = fields;
    }
    return this.#check;
  }

  #onTrailers(stream: Http2Stream, fields: HeaderFields | undefined, isEnd: boolean): void {
    if (stream.isRemoteEnd) {
      this.#resetByRule(stream, http2ErrorCodes.streamClosed);
    } else if (fields === undefined) {
      this.#resetByRule(stream, http2ErrorCodes.enhanceYourCalm);
    } else if (!isEnd || !stream.isBodyWhole || !areTrailersValid(fields)) {
      this.#resetByRule(stream, http2ErrorCodes.protocolError);
    } else {
      stream.isRemoteEnd = true;
      stream.tellEnd(fields);
    }
  }

  /** Validates a priority, but does not follow it. Source: section 6.3. */
  #onPriority({ streamId, bytes, start, end }: Frame): void {
    if (streamId === 0) throw broken("PRIORITY needs a stream");
    calm(this.#rates.takeIgnored(), "PRIORITY frames");
    if (end - start !== priorityBytes) {
      this.#breakStream(streamId, http2ErrorCodes.frameSizeError);
    } else if (dependencyAt(bytes, start) === streamId) {
      this.#breakStream(streamId, http2ErrorCodes.protocolError);
    }
  }

  /** Source: section 6.4. */
  #onRstStream({ streamId, start, end }: Frame): void {
    if (end - start !== 4) throw sizeBroken("RST_STREAM must have four bytes");
    if (this.#streams.isIdle(streamId)) throw broken("RST_STREAM for a stream that is idle");
    const stream = this.#streams.find(streamId);
    if (stream !== undefined) this.#streams.endByPeer(stream);
  }

  /** Source: section 6.5. */
  #onSettings({ streamId, flags, bytes, start, end }: Frame): void {
    if (streamId !== 0) throw broken("SETTINGS must not have a stream");
    calm(this.#rates.takeSettings(), "SETTINGS frames");
    if ((flags & frameFlags.ack) !== 0) {
      if (end > start) throw sizeBroken("an acknowledgement contains settings");
      return;
    }
    const settings = this.#settings;
    const windowBytes = settings.windowBytes;
    settings.apply(bytes, start, end);
    if (!this.#streams.shiftStreamWindows(settings.windowBytes - windowBytes)) {
      throw flowBroken("a setting makes a window too large");
    }
    this.#writer.settingsAck();
  }

  /** Source: section 6.7. */
  #onPing({ streamId, flags, bytes, start, end }: Frame): void {
    if (streamId !== 0) throw broken("PING must not have a stream");
    if (end - start !== 8) throw sizeBroken("PING must have eight bytes");
    calm(this.#rates.takePing(), "PING frames");
    if ((flags & frameFlags.ack) === 0) {
      this.#writer.pingAck(bytes, start);
    } else if (this.#leaving === "asked" && bytes.readUInt32BE(start + 4) === leavePing) {
      this.closeToStreams();
    }
  }

  /** Source: section 6.8. */
  #onGoaway({ streamId, start, end }: Frame): void {
    if (streamId !== 0) throw broken("GOAWAY must not have a stream");
    if (end - start < 8) throw sizeBroken("GOAWAY must have at least eight bytes");
    calm(this.#rates.takeIgnored(), "GOAWAY frames");
    this.#isPeerLeaving = true;
  }

  /** Source: section 6.9. */
  #onWindowUpdate({ streamId, bytes, start, end }: Frame): void {
    if (end - start !== 4) throw sizeBroken("WINDOW_UPDATE must have four bytes");
    calm(this.#rates.takeWindowUpdate(), "WINDOW_UPDATE frames");
    const byteCount = bytes.readUInt32BE(start) & 0x7f_ff_ff_ff;
    if (streamId === 0) {
      if (byteCount === 0) throw broken("WINDOW_UPDATE has an increment of 0");
      if (!this.#streams.addSendWindow(byteCount)) throw flowBroken("a window is too large");
      return;
    }
    if (this.#streams.isIdle(streamId)) throw broken("WINDOW_UPDATE for a stream that is idle");
    const stream = this.#streams.find(streamId);
    if (stream === undefined) return;
    if (byteCount === 0) this.#resetByRule(stream, http2ErrorCodes.protocolError);
    else if (!this.#streams.addStreamWindow(stream, byteCount)) {
      this.#resetByRule(stream, http2ErrorCodes.flowControlError);
    }
  }

  /** Ends a stream, or the connection if there is no stream to end. */
  #breakStream(streamId: number, code: Http2ErrorCode): void {
    const stream = this.#streams.find(streamId);
    if (stream === undefined) throw connectionError(code, "a frame without a stream is invalid");
    this.#resetByRule(stream, code);
  }

  #resetByRule(stream: Http2Stream, code: Http2ErrorCode): void {
    calm(this.#streams.resetByRule(stream, code), "streams to be reset");
  }
}
