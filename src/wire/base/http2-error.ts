/** Why a stream or a connection ends. Source: RFC 9113, section 7. */
export const http2ErrorCodes = {
  noError: 0x0,
  protocolError: 0x1,
  internalError: 0x2,
  flowControlError: 0x3,
  settingsTimeout: 0x4,
  streamClosed: 0x5,
  frameSizeError: 0x6,
  refusedStream: 0x7,
  cancel: 0x8,
  compressionError: 0x9,
  connectError: 0xa,
  enhanceYourCalm: 0xb,
  inadequateSecurity: 0xc,
  http11Required: 0xd,
} as const;

/** One of the codes of RFC 9113; a peer may send others. */
export type Http2ErrorCode = (typeof http2ErrorCodes)[keyof typeof http2ErrorCodes];

/**
 * The peer violated the protocol, and the connection ends with this code in a GOAWAY. Errors of a
 * single stream are answered where they are found, by RST_STREAM. This is not a `ServiceError`,
 * because only the peer can do anything about it. The message contains no byte of the peer's.
 *
 * Source: RFC 9113, section 5.4.1.
 */
export class Http2Error extends Error {
  override readonly name = "Http2Error";
  readonly code: Http2ErrorCode;

  constructor(code: Http2ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Returns an error that ends the connection. */
export function connectionError(code: Http2ErrorCode, message: string): Http2Error {
  return new Http2Error(code, message);
}
