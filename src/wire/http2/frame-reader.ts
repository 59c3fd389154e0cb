import {
  clientPreface,
  frameHeadBytes,
  framePayloadBytesMax,
  streamIdMax,
} from "../base/frames.js";
import { connectionError, http2ErrorCodes } from "../base/http2-error.js";

/**
 * A complete frame. The reader uses the object for the next frame, too: it is valid, like its
 * bytes, until `onFrame` returns.
 */
export interface Frame {
  /** One of `frameTypes`, or an unknown one. */
  readonly type: number;
  readonly flags: number;
  /** 31 bits; 0 for the connection. */
  readonly streamId: number;
  /** Contains the payload from `start` to below `end`. Bytes around it are not of this frame. */
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

/** Receives frames in their order. Its errors propagate from `FrameReader.read`. */
export interface FrameSink {
  onFrame(frame: Frame): void;
}

/** Maximum bytes of an incomplete frame that a reader keeps. */
export const heldBytesMax = frameHeadBytes + framePayloadBytesMax;

/**
 * Splits a stream of bytes into frames. A frame within one chunk is passed on in place. Only a
 * frame that a chunk's end cuts is copied, and at most one is kept.
 *
 * Source: RFC 9113, sections 3.4, 4.1 and 4.2.
 */
export class FrameReader {
  readonly #sink: FrameSink;
  readonly #frame = new ReadFrame();
  /** Bytes of the preface that have not arrived. */
  #prefaceLeft: number;
  #isStopped = false;
  /** The beginning of a frame that was cut, in a buffer for its head, then for all of it. */
  #held = noBytes;
  #heldBytes = 0;

  private constructor(sink: FrameSink, prefaceBytes: number) {
    this.#sink = sink;
    this.#prefaceLeft = prefaceBytes;
  }

  /** Returns a reader for what a client sends: its preface, then frames. */
  static ofClient(sink: FrameSink): FrameReader {
    return new FrameReader(sink, clientPreface.length);
  }

  /** Returns a reader for frames alone, as a server sends them. */
  static ofServer(sink: FrameSink): FrameReader {
    return new FrameReader(sink, 0);
  }

  /** Whether the whole preface of the client has arrived. */
  get isGreeted(): boolean {
    return this.#prefaceLeft === 0;
  }

  /** Bytes of an incomplete frame: at most `heldBytesMax`. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Passes on no more frames, including those of the chunk that is being read. */
  stop(): void {
    this.#isStopped = true;
    this.#held = noBytes;
    this.#heldBytes = 0;
  }

  /**
   * Reads the next bytes and passes on every frame that they complete.
   *
   * @throws Http2Error of the connection: PROTOCOL_ERROR for a wrong preface, FRAME_SIZE_ERROR for
   *   a frame above `framePayloadBytesMax`, once its head is there. Nothing may be read after.
   */
  read(chunk: Buffer): void {
    if (this.#isStopped) return;
    let at = this.#prefaceLeft > 0 ? this.#readPreface(chunk) : 0;
    if (this.#heldBytes > 0) at = this.#readHeld(chunk, at);
    const frame = this.#frame;
    while (!this.#isStopped && chunk.length - at >= frameHeadBytes) {
      const end = at + frameHeadBytes + payloadBytesOf(chunk, at);
      if (end > chunk.length) break;
      frame.set(chunk, at, end);
      this.#sink.onFrame(frame);
      at = end;
    }
    // Otherwise an idle connection would keep its last chunk in memory.
    frame.bytes = noBytes;
    const left = chunk.length - at;
    if (this.#isStopped || left === 0) return;
    this.#makeRoom(frameHeadBytes + (left < frameHeadBytes ? 0 : payloadBytesOf(chunk, at)));
    this.#hold(chunk, at, chunk.length);
  }

  /** Reads the preface. Returns where the chunk continues behind it. */
  #readPreface(chunk: Buffer): number {
    const end = Math.min(this.#prefaceLeft, chunk.length);
    const seen = clientPreface.length - this.#prefaceLeft;
    for (let i = 0; i < end; i += 1) {
      if (chunk[i] === clientPreface.charCodeAt(seen + i)) continue;
      throw connectionError(http2ErrorCodes.protocolError, "the peer does not use HTTP/2");
    }
    this.#prefaceLeft -= end;
    return end;
  }

  /** Completes the frame that is kept, first its head. Returns where the chunk continues. */
  #readHeld(chunk: Buffer, start: number): number {
    let at = start;
    if (this.#heldBytes < frameHeadBytes) {
      at = Math.min(chunk.length, start + frameHeadBytes - this.#heldBytes);
      this.#hold(chunk, start, at);
    }
    if (this.#heldBytes < frameHeadBytes) return at;
    const wholeBytes = frameHeadBytes + payloadBytesOf(this.#held, 0);
    this.#makeRoom(wholeBytes);
    const end = Math.min(chunk.length, at + wholeBytes - this.#heldBytes);
    this.#hold(chunk, at, end);
    if (this.#heldBytes < wholeBytes) return end;
    const whole = this.#held;
    this.#held = noBytes;
    this.#heldBytes = 0;
    this.#frame.set(whole, 0, wholeBytes);
    this.#sink.onFrame(this.#frame);
    return end;
  }

  /** Makes room for this many bytes of one frame. Bytes that are there are kept. */
  #makeRoom(bytes: number): void {
    if (this.#held.length >= bytes) return;
    const larger = Buffer.allocUnsafe(bytes);
    this.#held.copy(larger, 0, 0, this.#heldBytes);
    this.#held = larger;
  }

  /** Keeps a part of a frame for the next chunk. */
  #hold(chunk: Buffer, start: number, end: number): void {
    chunk.copy(this.#held, this.#heldBytes, start, end);
    this.#heldBytes += end - start;
  }
}

const noBytes: Buffer = Buffer.alloc(0);

class ReadFrame implements Frame {
  type = 0;
  flags = 0;
  streamId = 0;
  bytes = noBytes;
  start = 0;
  end = 0;

  /** Takes the values of the frame whose head begins at `at`. */
  set(bytes: Buffer, at: number, end: number): void {
    this.type = bytes[at + 3] ?? 0;
    this.flags = bytes[at + 4] ?? 0;
    this.streamId =
      (((bytes[at + 5] ?? 0) << 24) |
        ((bytes[at + 6] ?? 0) << 16) |
        ((bytes[at + 7] ?? 0) << 8) |
        (bytes[at + 8] ?? 0)) &
      streamIdMax;
    this.bytes = bytes;
    this.start = at + frameHeadBytes;
    this.end = end;
  }
}

/** Returns the number of bytes of the payload, from a complete head. */
function payloadBytesOf(bytes: Buffer, at: number): number {
  const payloadBytes =
    ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
  if (payloadBytes <= framePayloadBytesMax) return payloadBytes;
  throw connectionError(http2ErrorCodes.frameSizeError, "a frame is too large");
}
