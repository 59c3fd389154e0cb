import type { ServerHttp2Session } from "node:http2";
import type { Server } from "@grpc/grpc-js";
import { type Peer, unknownPeer } from "../../core/base/peer.js";

/**
 * Who is at the other end of a library's calls. The library knows the peers of sockets alone, and a
 * secured connection reaches it as a plain stream. So each session is noted as it begins, and
 * a call leads to its session by private fields, met with doubt: who cannot be told is nobody.
 */
export class GrpcJsPeers {
  readonly #bySession = new WeakMap<object, Peer>();
  #entering: Peer = unknownPeer;

  /** @param server whose connection injector exists already */
  constructor(server: Server) {
    const servers: unknown = Reflect.get(server, "http2Servers");
    if (!(servers instanceof Map)) return;
    for (const http2Server of servers.keys()) {
      http2Server.on("session", (session: ServerHttp2Session) => {
        this.#bySession.set(session, this.#entering);
      });
    }
  }

  /** Hands a connection over: its session begins before `inject` returns. */
  enter(peer: Peer, inject: () => void): void {
    this.#entering = peer;
    inject();
    this.#entering = unknownPeer;
  }

  /** Whose a call is; nobody's, where the library has no session of it more. */
  of(call: object): Peer {
    return this.ofStream(streamOf(call));
  }

  /** Whose a stream is. */
  ofStream(stream: object): Peer {
    const session = sessionOf(stream);
    return (session && this.#bySession.get(session)) ?? unknownPeer;
  }
}

/** The stream of a library's call; an object of no use, where the library has none there. */
export function streamOf(call: object): object {
  const intercepted: unknown = Reflect.get(Object(Reflect.get(call, "call")), "nextCall");
  return Object(Reflect.get(Object(intercepted), "stream"));
}

function sessionOf(stream: unknown): object | undefined {
  const session: unknown = Reflect.get(Object(stream), "session");
  return typeof session === "object" && session !== null ? session : undefined;
}
