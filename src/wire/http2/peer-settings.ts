import {
  framePayloadBytesMax,
  frameSizeSettingMax,
  initialWindowBytes,
  settingIds,
  windowBytesMax,
} from "../base/frames.js";
import {
  connectionError,
  type Http2Error,
  type Http2ErrorCode,
  http2ErrorCodes,
} from "../base/http2-error.js";
import type { HpackEncoder } from "../hpack/hpack-encoder.js";

const settingBytes = 6;

/**
 * Settings of the peer, as far as a server that does not push needs them.
 *
 * Source: RFC 9113, section 6.5.2.
 */
export class PeerSettings {
  readonly #encoder: HpackEncoder;
  /** SETTINGS_INITIAL_WINDOW_SIZE, in bytes. */
  windowBytes: number = initialWindowBytes;

  /** @param encoder gets each value of SETTINGS_HEADER_TABLE_SIZE in turn */
  constructor(encoder: HpackEncoder) {
    this.#encoder = encoder;
  }

  /**
   * Applies the payload of a SETTINGS frame, from `start` to below `end`, in order: the last value
   * of a setting counts.
   *
   * @throws Http2Error of the connection for an invalid value; those before it apply
   */
  apply(bytes: Buffer, start: number, end: number): void {
    if ((end - start) % settingBytes !== 0) {
      throw connectionError(
        http2ErrorCodes.frameSizeError,
        "the length of SETTINGS is not a multiple of six",
      );
    }
    for (let at = start; at < end; at += settingBytes) {
      this.#set(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2));
    }
  }

  /** Ignores unknown settings, and those that matter only to a side that pushes. */
  #set(id: number, value: number): void {
    switch (id) {
      case settingIds.headerTableSize:
        this.#encoder.setPeerTableBytes(value);
        return;
      case settingIds.enablePush:
        if (value > 1) throw refusedValue(http2ErrorCodes.protocolError);
        return;
      case settingIds.initialWindowSize:
        if (value > windowBytesMax) throw refusedValue(http2ErrorCodes.flowControlError);
        this.windowBytes = value;
        return;
      case settingIds.maxFrameSize:
        if (value < framePayloadBytesMax || value > frameSizeSettingMax) {
          throw refusedValue(http2ErrorCodes.protocolError);
        }
        return;
      default:
        return;
    }
  }
}

function refusedValue(code: Http2ErrorCode): Http2Error {
  return connectionError(code, "a setting has an invalid value");
}
