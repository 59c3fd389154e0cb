/**
 * The interface of an HTTP/2 connection for the protocol above it: requests are streams with
 * events, and answers are frames that leave together at the end of what became ready.
 */

/** A decoded header block: fields in their order, pseudo-fields first. */
export interface HeaderFields {
  /** Number of fields, including repeated names. */
  readonly count: number;
  /** Returns a name in lower case; that of a pseudo-field with its colon. */
  name(index: number): string;
  /** Returns a value, with bytes above 0x7f as Latin-1. */
  value(index: number): string;
  /** Returns the first value of a name. Undefined if there is none. */
  get(name: string): string | undefined;
}

/** A field to send: lower-case name, bytes as Latin-1. */
export type SentField = readonly [name: string, value: string];

/** Receives the events of a stream, in order, until `onReset` or both sides have ended. */
export interface StreamReader {
  /**
   * Handles a part of the body. The bytes are valid until this returns. They count against the
   * stream's window until `ServerStream.consumed` releases them.
   *
   * @param isEnd whether the peer sends no more: `onEnd` is not called then. So a call that came in
   *   one frame is answered from the bytes that were read, without a copy
   */
  onData(bytes: Uint8Array, isEnd: boolean): void;
  /** Handles the end of the peer's side, with `trailers` if it ended with a header block. */
  onEnd(trailers: HeaderFields | undefined): void;
  /**
   * Handles the loss of the stream: reset by the peer, or with its connection. Nothing may be sent
   * any more. `ServerStream.release` must follow, at once or when the work for it has ended.
   */
  onReset(): void;
  /** Reports that the stream's queue has drained to half of its capacity. */
  onDrain(): void;
}

/** A stream that the peer opened. Data is sent in order. Calls after its end do nothing. */
export interface ServerStream {
  readonly id: number;
  /** Bytes that wait for the peer's windows. */
  readonly queuedBytes: number;
  /**
   * Sends a header block. With `isEnd`, it is the last frame of this side. After it has left, a
   * peer that still sends is told to stop. Source: RFC 9113, section 8.1.
   */
  sendHeaders(fields: readonly SentField[], isEnd: boolean): void;
  /**
   * Sends a part of the body, as the peer's windows allow. The bytes belong to the connection from
   * now on. Returns false if the stream's queue is full: wait for `onDrain`.
   */
  sendData(bytes: Uint8Array, isEnd: boolean): boolean;
  /**
   * Sends two pieces as one, in one frame if they fit: a length and its content.
   *
   * @param head is copied before this returns, and then belongs to the caller again
   * @param bytes belong to the connection from now on
   */
  sendDataWithHead(head: Uint8Array, bytes: Uint8Array, isEnd: boolean): boolean;
  /** Returns this many bytes of `onData` to the peer's windows. */
  consumed(byteCount: number): void;
  /** Ends the stream at once, with an error code of RFC 9113, section 7. */
  reset(errorCode: number): void;
  /**
   * Called after `onReset`, when the work for the stream has ended. Until then it counts as open,
   * so that resets buy a peer no more work than the limit of open streams.
   */
  release(): void;
}

/** Accepts requests. */
export interface StreamAcceptor {
  /**
   * Accepts a request whose header block is complete. Returns the reader of the rest.
   *
   * @param isEnd whether it has no body: `onEnd` is called right after
   */
  onStream(stream: ServerStream, fields: HeaderFields, isEnd: boolean): StreamReader;
}
