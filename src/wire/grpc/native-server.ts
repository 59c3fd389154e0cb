import { type Peer, unknownPeer } from "../../core/base/peer.js";
import type { HeaderFields, ServerStream, StreamAcceptor, StreamReader } from "../base/http2.js";
import { BidiCall } from "./grpc-bidi.js";
import {
  GrpcConnection,
  type GrpcServerState,
  type NativeServerParts,
  type OpenStreams,
  type Stoppable,
} from "./grpc-context.js";
import { type CallHead, type Routes, readCallHead, routesOf } from "./grpc-head.js";
import { ServerStreamCall } from "./grpc-server-stream.js";
import { UnaryCall } from "./grpc-unary.js";
import { PartialBytes } from "./partial-bytes.js";

/**
 * gRPC on streams of HTTP/2: finds the method of a call and starts it.
 *
 * Source: "gRPC over HTTP2" of gRPC core.
 */
export class NativeServer {
  readonly #state: GrpcServerState;
  readonly #routes: Routes;
  readonly #openStreams = new OpenStreamSet();

  constructor(parts: NativeServerParts) {
    this.#state = { parts, openStreams: this.#openStreams, partialBytes: new PartialBytes() };
    this.#routes = routesOf(parts.services);
  }

  /** Returns an acceptor for the requests of one connection. */
  openConnection(peer: Peer = unknownPeer): StreamAcceptor {
    return new GrpcAcceptor(new GrpcConnection(this.#state, peer), this.#routes);
  }

  /** Tells open streaming calls to end now, and later ones when they begin. */
  close(): void {
    this.#openStreams.close();
  }
}

/** Accepts the requests of one connection. */
class GrpcAcceptor implements StreamAcceptor {
  readonly #connection: GrpcConnection;
  readonly #routes: Routes;
  // A proxy repeats the same block, for which the connection returns the same fields object.
  #lastFields: HeaderFields | undefined;
  #lastHead: CallHead | undefined;

  constructor(connection: GrpcConnection, routes: Routes) {
    this.#connection = connection;
    this.#routes = routes;
  }

  onStream(stream: ServerStream, fields: HeaderFields): StreamReader {
    const head = this.#readHead(fields);
    if (head.kind === "refusal") {
      stream.sendHeaders(head.answer, true);
      return new RefusedCall(stream);
    }
    const call = { stream, fields, head, connection: this.#connection };
    const { method } = head;
    if (method.kind === "unary") return new UnaryCall(call, method);
    if (method.kind === "serverStream") return new ServerStreamCall(call, method.handle);
    const bidi = new BidiCall(call);
    bidi.open(method.open);
    return bidi;
  }

  #readHead(fields: HeaderFields): CallHead {
    if (fields === this.#lastFields && this.#lastHead !== undefined) return this.#lastHead;
    const head = readCallHead(fields, this.#routes);
    this.#lastFields = fields;
    this.#lastHead = head;
    return head;
  }
}

/** Handles the rest of a call that was answered at once. */
class RefusedCall implements StreamReader {
  readonly #stream: ServerStream;

  constructor(stream: ServerStream) {
    this.#stream = stream;
  }

  onData(bytes: Uint8Array): void {
    this.#stream.consumed(bytes.length);
  }

  onEnd(): void {
    // Its answer has been sent.
  }

  onDrain(): void {
    // Nothing waits to be sent.
  }

  onReset(): void {
    this.#stream.release();
  }
}

class OpenStreamSet implements OpenStreams {
  readonly #streams = new Set<Stoppable>();
  #isClosing = false;

  get isClosing(): boolean {
    return this.#isClosing;
  }

  add(stream: Stoppable): void {
    this.#streams.add(stream);
  }

  delete(stream: Stoppable): void {
    this.#streams.delete(stream);
  }

  close(): void {
    this.#isClosing = true;
    for (const stream of this.#streams) stream.stop();
  }
}
