import { assert } from "../../core/base/errors.js";
import { frameFlags, frameHeadBytes, frameTypes } from "../base/frames.js";
import type { OutputBuffer } from "../base/output-buffer.js";

/** A setting to announce: an identifier of `settingIds` and 32 bits. */
type SentSetting = readonly [id: number, value: number];

/**
 * Writes frames into an output. A frame whose payload the caller makes is begun, filled through
 * `output` and ended, one at a time. Its length is put in when it is known.
 *
 * Source: RFC 9113, sections 4.1 and 6.
 */
export class FrameWriter {
  readonly output: OutputBuffer;
  /** Start of the frame that is being written. Undefined between frames. */
  #open: number | undefined;

  constructor(output: OutputBuffer) {
    this.output = output;
  }

  /** Begins a frame. What is appended to `output` until `end` is its payload. */
  begin(type: number, flags: number, streamId: number): void {
    assert(this.#open === undefined, "frames are written one after the other");
    this.#open = this.output.length;
    this.output.frameHead(0, (type << 8) | flags, streamId);
  }

  /** Ends the frame that was begun. */
  end(): void {
    const { output } = this;
    const start = this.#close();
    output.patch24(start, output.length - start - frameHeadBytes);
  }

  /**
   * Ends a HEADERS frame that was begun without `endHeaders` and filled with a whole header block.
   * What exceeds the peer's frame size continues in CONTINUATION frames.
   *
   * @param payloadBytesMax the peer's SETTINGS_MAX_FRAME_SIZE
   */
  endHeaders(streamId: number, payloadBytesMax: number): void {
    const { output } = this;
    const start = this.#close();
    const blockStart = start + frameHeadBytes;
    const blockBytes = output.length - blockStart;
    if (blockBytes <= payloadBytesMax) {
      output.patch24(start, blockBytes);
      output.patchBits(start + 4, frameFlags.endHeaders);
      return;
    }
    const rest = output.copyFrom(blockStart + payloadBytesMax);
    output.truncate(blockStart + payloadBytesMax);
    output.patch24(start, payloadBytesMax);
    for (let at = 0; at < rest.length; at += payloadBytesMax) {
      const end = Math.min(rest.length, at + payloadBytesMax);
      const flags = end === rest.length ? frameFlags.endHeaders : 0;
      output.frameHead(end - at, (frameTypes.continuation << 8) | flags, streamId);
      output.slice(rest, at, end);
    }
  }

  /** Removes the frame that was begun, and what was written since. */
  cancel(): void {
    this.output.truncate(this.#close());
  }

  settings(settings: readonly SentSetting[]): void {
    this.output.frameHead(settings.length * 6, frameTypes.settings << 8, 0);
    for (const [id, value] of settings) {
      this.output.uint16(id);
      this.output.uint32(value);
    }
  }

  settingsAck(): void {
    this.output.frameHead(0, (frameTypes.settings << 8) | frameFlags.ack, 0);
  }

  /** @param data eight bytes, two numbers of 32 bits */
  ping(dataHigh: number, dataLow: number): void {
    this.output.frameHead(8, frameTypes.ping << 8, 0);
    this.output.uint32(dataHigh);
    this.output.uint32(dataLow);
  }

  /** Answers a PING with its own eight bytes, from `start` on. */
  pingAck(bytes: Uint8Array, start: number): void {
    this.output.frameHead(8, (frameTypes.ping << 8) | frameFlags.ack, 0);
    this.output.slice(bytes, start, start + 8);
  }

  /** Without debug data, which is not meant for the peer. */
  goaway(lastStreamId: number, errorCode: number): void {
    this.output.frameHead(8, frameTypes.goaway << 8, 0);
    this.output.uint32(lastStreamId);
    this.output.uint32(errorCode);
  }

  rstStream(streamId: number, errorCode: number): void {
    this.output.frameHead(4, frameTypes.rstStream << 8, streamId);
    this.output.uint32(errorCode);
  }

  /** @param streamId 0 for the connection */
  windowUpdate(streamId: number, incrementBytes: number): void {
    this.output.frameHead(4, frameTypes.windowUpdate << 8, streamId);
    this.output.uint32(incrementBytes);
  }

  #close(): number {
    const start = this.#open;
    assert(start !== undefined, "a frame is begun before it is ended");
    this.#open = undefined;
    return start;
  }
}
