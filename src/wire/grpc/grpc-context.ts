import type { Clock } from "../../core/base/clock.js";
import type { Peer } from "../../core/base/peer.js";
import type { HeaderFields, ServerStream } from "../base/http2.js";
import type { CallHead } from "./grpc-head.js";
import { messageHeadBytes, type SpareBuffers } from "./grpc-message.js";
import type { PartialBytes } from "./partial-bytes.js";
import { type MappedThrow, messageBytesMax, type ServiceHandlers } from "./service.js";

/** What gRPC over HTTP/2 is made of. */
export interface NativeServerParts {
  readonly services: readonly ServiceHandlers[];
  readonly clock: Clock;
  /** The largest message that is taken, in bytes. Default `messageBytesMax`. */
  readonly receivedBytesMax?: number;
  /** For messages of streams, where handlers keep nothing of them. Default new memory for each. */
  readonly spareBuffers?: SpareBuffers;
  /** Told of every value thrown by a handler that no failure of the environment explains. */
  readonly onBug: (thrown: unknown) => void;
  /** Whether calls may have waited long before we read them. */
  readonly isLate: () => boolean;
  /** Told of every call that is not begun, because its caller has gone. */
  readonly onDropped: () => void;
  /** The status of what a handler throws. */
  readonly toFailure: (thrown: unknown) => MappedThrow;
}

/** What the open streams of all connections of a server have in common. */
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

/** What the connections of a server share. */
export interface GrpcServerState {
  readonly parts: NativeServerParts;
  readonly openStreams: OpenStreams;
  readonly partialBytes: PartialBytes;
}

/** What the calls of one connection share. */
export class GrpcConnection {
  readonly parts: NativeServerParts;
  readonly openStreams: OpenStreams;
  /** Who is at its other end. */
  readonly peer: Peer;
  /** Where the head of a message is written, for as long as it takes to copy it out. */
  readonly messageHead = new Uint8Array(messageHeadBytes);
  /** The largest message that is taken, in bytes. */
  readonly receivedBytesMax: number;
  readonly #partialBytes: PartialBytes;

  constructor({ parts, openStreams, partialBytes }: GrpcServerState, peer: Peer) {
    this.parts = parts;
    this.openStreams = openStreams;
    this.receivedBytesMax = parts.receivedBytesMax ?? messageBytesMax;
    this.peer = peer;
    this.#partialBytes = partialBytes;
  }

  /** Whether there is room for so many bytes more of requests that have begun and not ended. */
  hasRoom(byteCount: number): boolean {
    return this.#partialBytes.hasRoom(this.peer.identity, byteCount);
  }

  /** Counts such bytes as they come, and below 0 as they go. */
  countPartial(byteCount: number): void {
    // Most requests come whole, and drop nothing.
    if (byteCount !== 0) this.#partialBytes.count(this.peer.identity, byteCount);
  }
}

/** What a call is made of. */
export interface CallParts {
  readonly stream: ServerStream;
  readonly fields: HeaderFields;
  readonly head: CallHead & { readonly kind: "call" };
  readonly connection: GrpcConnection;
}

/** The largest message that the call's method takes, in bytes. */
export function bytesMaxOf({ head, connection }: CallParts): number {
  return head.method.bytesMax ?? connection.receivedBytesMax;
}

/** When the caller stops waiting, on the monotonic clock; Infinity where it does not say. */
export function deadlineMsOf({ head, connection }: CallParts): number {
  return head.timeoutMs === undefined
    ? Number.POSITIVE_INFINITY
    : connection.parts.clock.monotonicMs() + head.timeoutMs;
}
