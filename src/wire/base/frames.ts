/**
 * Numbers of HTTP/2 frames. A frame has a head of nine bytes (length, type, flags, stream) and a
 * payload of that length.
 *
 * Source: RFC 9113, sections 4 and 6.
 */

/** Frame types that a server may receive or send. Others are ignored (section 5.5). */
export const frameTypes = {
  data: 0x0,
  headers: 0x1,
  priority: 0x2,
  rstStream: 0x3,
  settings: 0x4,
  pushPromise: 0x5,
  ping: 0x6,
  goaway: 0x7,
  windowUpdate: 0x8,
  continuation: 0x9,
} as const;

/** Flags by their meaning. `ack` and `endStream` share a bit on different types. */
export const frameFlags = {
  /** DATA and HEADERS: the sender's side of the stream ends with this frame. */
  endStream: 0x1,
  /** SETTINGS and PING: acknowledges the peer's frame. */
  ack: 0x1,
  /** HEADERS and CONTINUATION: the header block ends with this frame. */
  endHeaders: 0x4,
  /** DATA and HEADERS: the payload begins with the length of the padding at its end. */
  padded: 0x8,
  /** HEADERS: five bytes of priority precede the header block. */
  priority: 0x20,
} as const;

/** Identifiers of settings. Source: RFC 9113, section 6.5.2. */
export const settingIds = {
  headerTableSize: 0x1,
  enablePush: 0x2,
  maxConcurrentStreams: 0x3,
  initialWindowSize: 0x4,
  maxFrameSize: 0x5,
  maxHeaderListSize: 0x6,
} as const;

/** What a client sends before its first frame. Source: RFC 9113, section 3.4. */
export const clientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** Bytes of a frame before its payload. */
export const frameHeadBytes = 9;

/** Payload bytes that every peer accepts, and this side's maximum. Source: section 4.2. */
export const framePayloadBytesMax = 16_384;

/** The largest SETTINGS_MAX_FRAME_SIZE that a peer may announce. Source: section 6.5.2. */
export const frameSizeSettingMax = 0xff_ff_ff;

/** The largest stream identifier: 31 bits. Source: section 5.1.1. */
export const streamIdMax = 0x7f_ff_ff_ff;

/** The largest flow-control window, in bytes. Source: section 6.9.1. */
export const windowBytesMax = 0x7f_ff_ff_ff;

/** A flow-control window before any setting or WINDOW_UPDATE, in bytes. Source: section 6.9.2. */
export const initialWindowBytes = 65_535;

/** SETTINGS_HEADER_TABLE_SIZE before any setting, in bytes. Source: section 6.5.2. */
export const initialTableBytes = 4_096;
