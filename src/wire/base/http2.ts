/**
 * What an HTTP/2 connection is to the protocol above it: requests come as streams with events, and
 * answers are frames that leave together at the end of what became ready.
 */

/** A header block that was decoded: fields in their order, pseudo-fields first. */
export interface HeaderFields {
  /** Fields, repeated names included. */
  readonly count: number;
  /** In lower case; pseudo-fields with their colon. */
  name(index: number): string;
  /** Bytes above 0x7f as Latin-1. */
  value(index: number): string;
  /** The first value of a name; undefined when there is none. */
  get(name: string): string | undefined;
}

/** A field to be sent: lower-case name, bytes as Latin-1. */
export type SentField = readonly [name: string, value: string];

/** Told of what comes on a stream, in order, until `onReset` or both sides have ended. */
export interface StreamReader {
  /**
   * A part of the body. The bytes hold until this returns; they count against the stream's window
   * until `ServerStream.consumed` says that they are done with.
   *
   * @param isEnd whether the peer sends no more: `onEnd` is not told then. A call that came in one
   *   frame is so answered from the bytes that were read, without a copy
   */
  onData(bytes: Uint8Array, isEnd: boolean): void;
  /** The peer sends no more; `trailers` when it ended with a header block. */
  onEnd(trailers: HeaderFields | undefined): void;
  /**
   * The stream is gone: reset by the peer, or with its connection. Nothing may be sent any more;
   * `ServerStream.release` must follow, at once or when the work for it has ended.
   */
  onReset(): void;
  /** What was sent has left the stream's queue down to a half of what it may hold. */
  onDrain(): void;
}

/** A stream that the peer opened. What is sent leaves in order; calls after its end do nothing. */
export interface ServerStream {
  readonly id: number;
  /** Bytes that wait for the peer's windows. */
  readonly queuedBytes: number;
  /**
   * Sends a header block; with `isEnd` it is the last frame of this side. When it has left, a peer
   * that still sends is told to stop. Source: RFC 9113, section 8.1.
   */
  sendHeaders(fields: readonly SentField[], isEnd: boolean): void;
  /**
   * Sends a part of the body, as the peer's windows allow; the bytes are the connection's from now
   * on. Answers false when the stream's queue is full: wait for `onDrain`.
   */
  sendData(bytes: Uint8Array, isEnd: boolean): boolean;
  /**
   * Sends two pieces as if they were one, in one frame where it fits: a length and what it is of.
   *
   * @param head is copied before this returns, and the caller's again then
   * @param bytes the connection's from now on
   */
  sendDataWithHead(head: Uint8Array, bytes: Uint8Array, isEnd: boolean): boolean;
  /** Gives so many bytes of `onData` back to the peer's windows. */
  consumed(byteCount: number): void;
  /** Ends the stream at once, with an error code of RFC 9113, section 7. */
  reset(errorCode: number): void;
  /**
   * Told after `onReset`: nobody works for the stream any more. Until then it counts as open,
   * so that resets buy a peer no more work than the bound on open streams.
   */
  release(): void;
}

/** Takes requests. */
export interface StreamAcceptor {
  /**
   * A request's header block is complete. Answers who reads the rest.
   *
   * @param isEnd whether it has no body: `onEnd` is told right after
   */
  onStream(stream: ServerStream, fields: HeaderFields, isEnd: boolean): StreamReader;
}
