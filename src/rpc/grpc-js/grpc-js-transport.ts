import {
  type ConnectionInjector,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type ServerOptions,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
} from "@grpc/grpc-js";
import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import { type Peer, unknownPeer } from "../../core/base/peer.js";
import { PartialBytes } from "../../wire/grpc/partial-bytes.js";
import {
  type CallContext,
  concurrentStreamsMax,
  type MethodHandler,
  messageBytesMax,
  type ServerStreamHandler,
  type ServiceHandlers,
  type UnaryAnswer,
  type UnaryMethod,
} from "../../wire/grpc/service.js";
import { toCallFailure } from "../grpc/status.js";
import { type DuplexCall, type ServedBidi, serveBidi } from "./grpc-js-bidi.js";
import { askToLeave, type Connection, openSessions, tellClientsToLeave } from "./grpc-js-goaway.js";
import { GrpcJsPeers, streamOf } from "./grpc-js-peers.js";
import { boundUnfinished } from "./grpc-js-unfinished.js";

/** What one connection may hold in buffers, in megabytes; the library's own default is no bound. */
const sessionMemoryMegabytesMax = 64;

/** Silence on a connection after which we ask whether its client is still there. */
const keepaliveTimeMs = 60_000;

/** How long that client has to answer. */
const keepaliveTimeoutMs = 20_000;

/** What a `GrpcJsTransport` is made of. */
export interface GrpcJsTransportParts {
  readonly services: readonly ServiceHandlers[];
  readonly clock: Clock;
  readonly random: Random;
  /** Age at which a connection is asked to go, plus or minus 10 %. Default a day. */
  readonly connectionAgeMsMax: number;
  /** How long calls on such a connection may still take. Default an hour. */
  readonly connectionAgeGraceMs: number;
  /** Told of every value thrown by a handler that no failure of the environment explains. */
  readonly onBug: (thrown: unknown) => void;
  /** Whether calls may have waited long before we read them. */
  readonly isLate: () => boolean;
  /** Told of every call that is not begun, because its caller has gone. */
  readonly onDropped: () => void;
  /** The largest message that is taken, in bytes. Default `messageBytesMax`. */
  readonly receivedBytesMax?: number;
}

type Bytes = Uint8Array;
type UnaryCall = ServerUnaryCall<Buffer, Buffer>;
type StreamCall = ServerWritableStream<Buffer, Buffer>;

/**
 * Serves `ServiceHandlers` on @grpc/grpc-js. It opens no port: whoever listens hands it sockets, so
 * that a taken port and a connection too many are handled in one place for every protocol.
 *
 * Metadata is bounded by Node: a header block above 64 KiB resets the stream.
 */
export class GrpcJsTransport {
  readonly #parts: GrpcJsTransportParts;
  readonly #server: Server;
  readonly #injector: ConnectionInjector;
  readonly #peers: GrpcJsPeers;
  readonly #sockets = new Set<Connection>();
  readonly #streams = new Set<AbortController>();
  readonly #bidiCalls = new WeakMap<object, ServedBidi>();
  #isClosing = false;

  constructor(parts: GrpcJsTransportParts) {
    this.#parts = parts;
    this.#server = new Server({
      ...serverOptions,
      "grpc.max_receive_message_length": parts.receivedBytesMax ?? messageBytesMax,
      interceptors: [this.#boundUnfinished()],
    });
    for (const service of parts.services) this.#addService(service);
    this.#injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#peers = new GrpcJsPeers(this.#server);
  }

  /** Serves one connection, from now to its end. */
  accept(socket: Connection, peer: Peer = unknownPeer): void {
    if (this.#isClosing) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    const stopAging = this.#limitAge(socket);
    socket.once("close", () => {
      stopAging();
      this.#sockets.delete(socket);
    });
    this.#peers.enter(peer, () => this.#injector.injectConnection(socket));
  }

  /**
   * First step of a graceful end: clients learn that they should go, and what they have sent until
   * then is still served. Resolves when all know, or after `waitMs`.
   */
  async announceClose(waitMs: number): Promise<void> {
    const clients = { sockets: this.#sockets, sessions: openSessions(this.#server) };
    await tellClientsToLeave(clients, { clock: this.#parts.clock, waitMs });
  }

  /**
   * Second step: no new calls; those in flight may finish for `graceMs`, then connections are cut.
   * Answers whether all ended by themselves.
   */
  async close(graceMs: number): Promise<boolean> {
    this.#isClosing = true;
    for (const stream of this.#streams) stream.abort();
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.schedule(graceMs, () => {
        // forceShutdown knows no session while channelz is off, so the sockets are ours to cut.
        for (const socket of this.#sockets) socket.destroy();
        resolve(false);
      });
      this.#server.tryShutdown(() => {
        cancel();
        resolve(true);
      });
    });
  }

  /**
   * Asks an old connection to go, so that clients spread over new replicas, and cuts it when it is
   * still there after the grace. The library's own way loses calls: see `askToLeave`.
   */
  #limitAge(socket: Connection): Cancel {
    const { clock, random, connectionAgeMsMax, connectionAgeGraceMs } = this.#parts;
    // Connections that were opened together must not all come back together.
    const ageMs = connectionAgeMsMax * (0.9 + 0.2 * random.next());
    let cancel = clock.schedule(ageMs, () => {
      askToLeave(socket);
      cancel = clock.schedule(connectionAgeGraceMs, () => socket.destroy());
    });
    return () => cancel();
  }

  /** Bounds unfinished requests, of each peer and of all. */
  #boundUnfinished(): ServerInterceptor {
    const { services, clock, onBug, receivedBytesMax = messageBytesMax } = this.#parts;
    const methods = new Map<string, MethodHandler>();
    for (const { name, methods: own } of services) {
      for (const method of own) methods.set(`/${name}/${method.name}`, method);
    }
    const shared = {
      partialBytes: new PartialBytes(),
      clock,
      peerOf: (stream: object) => this.#peers.ofStream(stream).identity,
    };
    return ({ path, requestStream }, call) => {
      const method = methods.get(path);
      const onTooLarge = (stream: object): boolean => {
        if (method?.kind === "bidi") return this.#bidiCalls.get(stream)?.answerTooLarge() ?? false;
        if (method?.kind !== "unary" || method.onTooLarge === undefined) return false;
        method.onTooLarge(new GrpcJsAnswer(answerTo(call), onBug));
        return true;
      };
      const bytesMax = Math.min(method?.bytesMax ?? receivedBytesMax, receivedBytesMax);
      const hasOneRequest = !requestStream;
      return boundUnfinished(call, { ...shared, bytesMax, hasOneRequest, onTooLarge });
    };
  }

  #addService({ name, methods }: ServiceHandlers): void {
    for (const method of methods) {
      const definition = methodDefinition(`/${name}/${method.name}`, method.kind);
      this.#server.addService(
        { [method.name]: definition },
        { [method.name]: this.#implementation(method) },
      );
    }
  }

  #implementation(method: MethodHandler) {
    if (method.kind === "unary") return this.#unary(method);
    if (method.kind === "serverStream") return this.#serverStream(method.handle);
    const { onBug } = this.#parts;
    return (call: DuplexCall): void => {
      const context = { ...this.#context(call), peer: this.#peers.of(call) };
      this.#bidiCalls.set(streamOf(call), serveBidi(method.open, { call, context, onBug }));
    };
  }

  #unary(method: UnaryMethod): (call: UnaryCall, respond: sendUnaryData<Buffer>) => void {
    const begin = (call: UnaryCall, respond: sendUnaryData<Buffer>): void => {
      const answer = new GrpcJsAnswer(respond, this.#parts.onBug);
      try {
        method.handle(call.request, this.#context(call), answer);
      } catch (thrown) {
        answer.fail(thrown);
      }
    };
    const { clock, isLate, onDropped } = this.#parts;
    return (call, respond): void => {
      if (!isLate()) {
        begin(call, respond);
        return;
      }
      // Deadlines count from when we read a call. Whoever gave up before has sent a reset: it lies
      // behind the call in what this turn reads.
      clock.scheduleTurn(() => {
        if (call.cancelled) onDropped();
        else begin(call, respond);
      });
    };
  }

  #serverStream(handle: ServerStreamHandler) {
    return (call: StreamCall): void => {
      const abort = new AbortController();
      this.#streams.add(abort);
      call.once("cancelled", () => abort.abort());
      this.#pump(call, { handle, signal: abort.signal })
        .catch((thrown: unknown) => call.emit("error", this.#failure(thrown)))
        .catch((thrown: unknown) => this.#parts.onBug(thrown))
        .finally(() => this.#streams.delete(abort));
      if (this.#isClosing) abort.abort();
    };
  }

  async #pump(
    call: StreamCall,
    { handle, signal }: { readonly handle: ServerStreamHandler; readonly signal: AbortSignal },
  ): Promise<void> {
    for await (const bytes of handle(call.request, { ...this.#context(call), signal })) {
      if (signal.aborted) break;
      if (!call.write(asBuffer(bytes))) await drained(call, signal);
    }
    if (call.cancelled) return;
    if (this.#isClosing) {
      call.emit("error", { code: grpcStatuses.unavailable, details: "The server is stopping." });
    } else {
      call.end();
    }
  }

  #context(call: UnaryCall | StreamCall | DuplexCall): CallContext {
    return {
      deadlineMs: this.#deadlineMs(call.getDeadline()),
      metadata: (name) => {
        const value = call.metadata.get(name)[0];
        // The library decodes fields whose names end in -bin.
        return typeof value === "string" ? value : value?.toString("latin1");
      },
    };
  }

  /** The library counts on the wall clock: what is left of it is moved to the monotonic one. */
  #deadlineMs(deadline: ReturnType<UnaryCall["getDeadline"]>): number {
    const epochMs = Number(deadline);
    if (epochMs === Number.POSITIVE_INFINITY) return epochMs;
    const { clock } = this.#parts;
    return clock.monotonicMs() + (epochMs - clock.epochUs() / 1_000);
  }

  #failure(thrown: unknown): Failure {
    return failureOf(thrown, this.#parts.onBug);
  }
}

/** A failure as the library takes it. */
interface Failure {
  readonly code: number;
  readonly details: string;
}

function failureOf(thrown: unknown, onBug: (thrown: unknown) => void): Failure {
  const { grpcStatus, message, isBug } = toCallFailure(thrown);
  if (isBug) onBug(thrown);
  return { code: grpcStatus, details: message };
}

/** Answers a call that has not reached its handler. */
function answerTo(call: ServerInterceptingCallInterface): sendUnaryData<Buffer> {
  return (failure, bytes) => {
    if (failure === null && bytes) {
      call.sendMessage(bytes, () => call.sendStatus({ code: 0, details: "OK" }));
    } else {
      const { code = grpcStatuses.internal, details = "" } = failure ?? {};
      call.sendStatus({ code, details });
    }
  };
}

/** A call's answer on its way to the library: the first one, whatever a handler does. */
class GrpcJsAnswer implements UnaryAnswer {
  readonly #respond: sendUnaryData<Buffer>;
  readonly #onBug: (thrown: unknown) => void;
  #isSent = false;

  constructor(respond: sendUnaryData<Buffer>, onBug: (thrown: unknown) => void) {
    this.#respond = respond;
    this.#onBug = onBug;
  }

  reply(bytes: Bytes): void {
    this.#send(() => this.#respond(null, asBuffer(bytes)));
  }

  fail(thrown: unknown): void {
    const failure = failureOf(thrown, this.#onBug);
    this.#send(() => this.#respond(failure));
  }

  /** Nothing a call does may end the process, whatever the library thinks of the answer. */
  #send(answer: () => void): void {
    if (this.#isSent) {
      this.#onBug(new Error("A handler answered a call twice."));
      return;
    }
    this.#isSent = true;
    try {
      answer();
    } catch (thrown) {
      this.#onBug(thrown);
    }
  }
}

/** Spelled out, defaults included: what the library leaves open a caller could use against us. */
const serverOptions: ServerOptions = {
  "grpc.max_concurrent_streams": concurrentStreamsMax,
  "grpc.max_send_message_length": messageBytesMax,
  "grpc.keepalive_time_ms": keepaliveTimeMs,
  "grpc.keepalive_timeout_ms": keepaliveTimeoutMs,
  "grpc-node.max_session_memory": sessionMemoryMegabytesMax,
  "grpc.enable_channelz": 0,
};

/** Messages stay bytes here: handlers decode them, so that every transport treats them alike. */
function methodDefinition(
  path: string,
  kind: MethodHandler["kind"],
): MethodDefinition<Buffer, Buffer> {
  return {
    path,
    requestStream: kind === "bidi",
    responseStream: kind !== "unary",
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  };
}

function identity(bytes: Buffer): Buffer {
  return bytes;
}

function asBuffer(bytes: Bytes): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Resolves when the client has read enough that more may be sent, or is gone. */
function drained(call: StreamCall, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      call.off("drain", finish);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    call.once("drain", finish);
    signal.addEventListener("abort", finish);
    if (signal.aborted) finish();
  });
}
