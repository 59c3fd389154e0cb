import { streamIdMax } from "../base/frames.js";
import { connectionError, type Http2Error, http2ErrorCodes } from "../base/http2-error.js";
import type { Frame } from "./frame-reader.js";

/** Bytes of a priority, in PRIORITY and before a header block. Source: RFC 9113, section 6.3. */
export const priorityBytes = 5;

/** Returns the stream that a priority depends on, without the exclusive bit. */
export function dependencyAt(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) & streamIdMax;
}

/**
 * Returns where the payload of a padded frame ends, without the padding. That is before its start
 * if the padding is too long.
 *
 * @throws Http2Error of the connection if there is no length of the padding
 */
export function unpaddedEnd({ bytes, start, end }: Frame): number {
  if (start === end) throw sizeBroken("a padded frame has no pad length");
  return end - (bytes[start] ?? 0);
}

/** Ends the connection with ENHANCE_YOUR_CALM if a limit was exceeded. */
export function calm(isWithin: boolean, what: string): void {
  if (isWithin) return;
  throw connectionError(http2ErrorCodes.enhanceYourCalm, `too many or too large: ${what}`);
}

/** Returns a PROTOCOL_ERROR of the connection. */
export function broken(message: string): Http2Error {
  return connectionError(http2ErrorCodes.protocolError, message);
}

/** Returns a FLOW_CONTROL_ERROR of the connection. */
export function flowBroken(message: string): Http2Error {
  return connectionError(http2ErrorCodes.flowControlError, message);
}

/** Returns a FRAME_SIZE_ERROR of the connection. */
export function sizeBroken(message: string): Http2Error {
  return connectionError(http2ErrorCodes.frameSizeError, message);
}

/** Returns a STREAM_CLOSED of the connection. Source: RFC 9113, section 5.1. */
export function closedBroken(): Http2Error {
  return connectionError(http2ErrorCodes.streamClosed, "a frame for a stream that has ended");
}
