import type { Clock } from "../core/clock.js";
import type { Peer } from "../core/peer.js";
import type { CallHead } from "./grpc-head.js";
import { messageHeadBytes } from "./grpc-message.js";
import type { HeaderFields, ServerStream } from "./http2.js";
import type { MappedThrow, ServiceHandlers } from "./service.js";

/** What gRPC over HTTP/2 is made of. */
export interface GrpcLaneParts {
  readonly services: readonly ServiceHandlers[];
  readonly clock: Clock;
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

/**
 * The most bytes of requests that one connection may have begun and not finished; a request above
 * is refused. Envoy's requests come whole, in one frame.
 */
export const partialBytesMax = 16_777_216;

/** The same for all connections of a server together: it is theirs, however many there are. */
export const serverPartialBytesMax = 67_108_864;

/** How long a request may take from its first byte to its last one, in milliseconds. */
export const partialMsMax = 10_000;

/** Bytes of requests that have begun and not ended, on all connections of a server. */
export interface ServerPartialBytes {
  count: number;
}

/** What a connection has of its server, and of its own. */
interface ConnectionTerms {
  readonly openStreams: OpenStreams;
  readonly serverPartial: ServerPartialBytes;
  readonly peer: Peer;
}

/** What the calls of one connection share. */
export class GrpcConnection {
  readonly parts: GrpcLaneParts;
  readonly openStreams: OpenStreams;
  /** Who is at its other end. */
  readonly peer: Peer;
  /** Where the head of a message is written, for as long as it takes to copy it out. */
  readonly messageHead = new Uint8Array(messageHeadBytes);
  readonly #serverPartial: ServerPartialBytes;
  #partialBytes = 0;

  constructor(parts: GrpcLaneParts, { openStreams, serverPartial, peer }: ConnectionTerms) {
    this.parts = parts;
    this.openStreams = openStreams;
    this.peer = peer;
    this.#serverPartial = serverPartial;
  }

  /**
   * Whether there is room for so many bytes more of requests that have begun and not ended, here
   * and on all connections together.
   */
  hasRoom(byteCount: number): boolean {
    return (
      this.#partialBytes + byteCount <= partialBytesMax &&
      this.#serverPartial.count + byteCount <= serverPartialBytesMax
    );
  }

  /** Counts such bytes as they come, and below 0 as they go. */
  countPartial(byteCount: number): void {
    this.#partialBytes += byteCount;
    this.#serverPartial.count += byteCount;
  }
}

/** What a call is made of. */
export interface CallParts {
  readonly stream: ServerStream;
  readonly fields: HeaderFields;
  readonly head: CallHead & { readonly kind: "call" };
  readonly connection: GrpcConnection;
}

/** When the caller stops waiting, on the monotonic clock; Infinity where it does not say. */
export function deadlineMsOf({ head, connection }: CallParts): number {
  return head.timeoutMs === undefined
    ? Number.POSITIVE_INFINITY
    : connection.parts.clock.monotonicMs() + head.timeoutMs;
}
