import type { Clock } from "../../core/base/clock.js";
import type { Peer } from "../../core/base/peer.js";
import type { HeaderFields, ServerStream } from "../base/http2.js";
import type { CallHead } from "./grpc-head.js";
import { messageHeadBytes, type SpareBuffers } from "./grpc-message.js";
import type { PartialBytes } from "./partial-bytes.js";
import { type MappedThrow, messageBytesMax, type ServiceHandlers } from "./service.js";

/** Dependencies and settings of gRPC over HTTP/2. */
export interface NativeServerParts {
  readonly services: readonly ServiceHandlers[];
  readonly clock: Clock;
  /** Maximum size of a received message, in bytes. Default `messageBytesMax`. */
  readonly receivedBytesMax?: number;
  /** For messages of streams, if handlers keep nothing of them. Default: new memory for each. */
  readonly spareBuffers?: SpareBuffers;
  /** Called with every value that a handler throws and no failure of the environment explains. */
  readonly onBug: (thrown: unknown) => void;
  /** Reports whether calls may have waited long before they were read. */
  readonly isLate: () => boolean;
  /** Called for every call that is not begun because its caller has gone. */
  readonly onDropped: () => void;
  /** Returns the status for what a handler throws. */
  readonly toFailure: (thrown: unknown) => MappedThrow;
}

/** The open streams of all connections of a server. */
export interface OpenStreams {
  /** Whether no new work is taken. */
  readonly isClosing: boolean;
  add(stream: Stoppable): void;
  delete(stream: Stoppable): void;
}

/** A call that lasts until it is told to stop. */
export interface Stoppable {
  stop(): void;
}

/** State that the connections of a server share. */
export interface GrpcServerState {
  readonly parts: NativeServerParts;
  readonly openStreams: OpenStreams;
  readonly partialBytes: PartialBytes;
}

/** State that the calls of one connection share. */
export class GrpcConnection {
  readonly parts: NativeServerParts;
  readonly openStreams: OpenStreams;
  /** The peer at its other end. */
  readonly peer: Peer;
  /** Buffer for the head of a message, until it is copied. */
  readonly messageHead = new Uint8Array(messageHeadBytes);
  /** Maximum size of a received message, in bytes. */
  readonly receivedBytesMax: number;
  readonly #partialBytes: PartialBytes;

  constructor({ parts, openStreams, partialBytes }: GrpcServerState, peer: Peer) {
    this.parts = parts;
    this.openStreams = openStreams;
    this.receivedBytesMax = parts.receivedBytesMax ?? messageBytesMax;
    this.peer = peer;
    this.#partialBytes = partialBytes;
  }

  /** Reports whether incomplete requests may take this many more bytes. */
  hasRoom(byteCount: number): boolean {
    return this.#partialBytes.hasRoom(this.peer.identity, byteCount);
  }

  /** Counts bytes of incomplete requests as they come, and below 0 as they go. */
  countPartial(byteCount: number): void {
    // Most requests arrive as a whole and drop nothing.
    if (byteCount !== 0) this.#partialBytes.count(this.peer.identity, byteCount);
  }
}

/** Parts of a call. */
export interface CallParts {
  readonly stream: ServerStream;
  readonly fields: HeaderFields;
  readonly head: CallHead & { readonly kind: "call" };
  readonly connection: GrpcConnection;
}

/** Returns the maximum size of a message for the call's method, in bytes. */
export function bytesMaxOf({ head, connection }: CallParts): number {
  return head.method.bytesMax ?? connection.receivedBytesMax;
}

/** Returns when the caller stops waiting, on the monotonic clock. Infinity if it does not say. */
export function deadlineMsOf({ head, connection }: CallParts): number {
  return head.timeoutMs === undefined
    ? Number.POSITIVE_INFINITY
    : connection.parts.clock.monotonicMs() + head.timeoutMs;
}
