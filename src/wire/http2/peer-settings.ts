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
 * What the peer has announced, as far as a server that pushes nothing needs it.
 *
 * Source: RFC 9113, section 6.5.2.
 */
export class PeerSettings {
  readonly #encoder: HpackEncoder;
  /** SETTINGS_INITIAL_WINDOW_SIZE, in bytes. */
  windowBytes: number = initialWindowBytes;

  /** @param encoder told of SETTINGS_HEADER_TABLE_SIZE, each value that it goes through */
  constructor(encoder: HpackEncoder) {
    this.#encoder = encoder;
  }

  /**
   * Takes the payload of a SETTINGS frame, from `start` below `end`, one after the other: the last
   * value of a setting counts.
   *
   * @throws Http2Error of the connection for a value that may not be; what came before it holds
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

  /** Settings that nobody knows are ignored; so are those that only matter to who pushes. */
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
