import { createServer as createHttp1, type IncomingMessage, type ServerResponse } from "node:http";
import {
  createServer as createHttp2,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import type { Duplex } from "node:stream";
import type { Clock } from "../../core/base/clock.js";
import type { AdminChoice } from "../config/admin-choice.js";
import type { OpenTls } from "../tls/tls.js";

/** Handles a request, with the names in its client's certificate. */
export type AdminRequestHandler = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
  peer: AdminPeer,
) => void;

/** The peer of a connection. */
export interface AdminPeer {
  readonly address: string;
  /** Names of a verified certificate. Empty: there is none. */
  readonly certificateNames: readonly string[];
}

/** Reports whether callers of the port use TLS. */
export function isTlsSpoken({
  choice,
  tls,
}: {
  readonly choice: Pick<AdminChoice, "isLoopback">;
  readonly tls: OpenTls | undefined;
}): boolean {
  return tls !== undefined && !choice.isLoopback;
}

/** Maximum number of concurrent streams of one HTTP/2 connection. */
const streamsMax = 100;

/** Maximum time to receive headers, in milliseconds. */
const defaultHeadersMsMax = 10_000;

/** Maximum time to receive a request with its body, in milliseconds. */
export const adminRequestMsMax = 60_000;

/** Maximum time that a connection may be idle, in milliseconds. */
const silentMsMax = 120_000;

/** Maximum time until a new connection must send something, in milliseconds. */
const greetingMsMax = 10_000;

/** First bytes of HTTP/2 with prior knowledge. Source: RFC 9113, section 3.4. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/**
 * HTTP/1.1 and HTTP/2 on the same connections. The first bytes of a connection determine its
 * protocol, so that `curl`, browsers and gRPC clients need no separate ports.
 */
export class AdminConnections {
  readonly #clock: Clock;
  readonly #http1;
  readonly #http2;
  readonly #open = new Set<Duplex>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #peers = new WeakMap<object, AdminPeer>();

  /** @param headersMsMax maximum time to receive headers, in milliseconds. Default 10 s */
  constructor(clock: Clock, handle: AdminRequestHandler, headersMsMax = defaultHeadersMsMax) {
    this.#clock = clock;
    this.#http1 = createHttp1(
      {
        headersTimeout: headersMsMax,
        requestTimeout: adminRequestMsMax,
        keepAliveTimeout: silentMsMax,
        connectionsCheckingInterval: headersMsMax / 10,
      },
      (request, response) => handle(request, response, this.#peerOf(request.socket)),
    );
    this.#http1.on("clientError", (_error, socket) => socket.destroy());
    // The server receives its connections from `accept`. Only a listening server enforces the times
    // above, and knows which connections are idle.
    this.#http1.emit("listening");
    this.#http2 = createHttp2(
      { settings: { maxConcurrentStreams: streamsMax, enablePush: false } },
      (request, response) => {
        const { session } = request.stream;
        handle(request, response, this.#peerOf(session));
      },
    );
    this.#http2.on("session", (session) => {
      this.#sessions.add(session);
      session.setTimeout(silentMsMax, () => session.close());
      session.once("close", () => this.#sessions.delete(session));
    });
    this.#http2.on("sessionError", () => {});
  }

  /** Takes a connection, with or without TLS. */
  accept(socket: Duplex, peer: AdminPeer): void {
    this.#open.add(socket);
    const cancel = this.#clock.schedule(greetingMsMax, () => socket.destroy());
    socket.once("close", () => {
      cancel();
      this.#open.delete(socket);
    });
    // A broken connection affects no other.
    socket.on("error", () => {});
    let begun: Buffer = Buffer.alloc(0);
    const onReadable = (): void => {
      for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) {
        begun = Buffer.concat([begun, chunk]);
      }
      const isHttp2 = begun.subarray(0, preface.length).equals(preface.subarray(0, begun.length));
      if (begun.length === 0 || (isHttp2 && begun.length < preface.length)) return;
      socket.removeListener("readable", onReadable);
      cancel();
      socket.unshift(begun);
      this.#serve(socket, { isHttp2, peer });
    };
    socket.on("readable", onReadable);
  }

  /** Closes connections that are idle now, and lets the others finish their calls. */
  finish(): void {
    for (const session of this.#sessions) session.close();
    this.#http1.close();
  }

  /** Closes all open connections at once. */
  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }

  get openCount(): number {
    return this.#open.size;
  }

  #serve(
    socket: Duplex,
    { isHttp2, peer }: { readonly isHttp2: boolean; readonly peer: AdminPeer },
  ): void {
    if (!isHttp2) {
      this.#peers.set(socket, peer);
      this.#http1.emit("connection", socket);
      return;
    }
    const note = (session: ServerHttp2Session): void => {
      this.#peers.set(session, peer);
    };
    // The event is emitted before `emit` below returns.
    this.#http2.once("session", note);
    this.#http2.emit("connection", socket);
    this.#http2.removeListener("session", note);
  }

  #peerOf(connection: object | undefined): AdminPeer {
    return (connection && this.#peers.get(connection)) ?? nobody;
  }
}

const nobody: AdminPeer = { address: "", certificateNames: [] };
