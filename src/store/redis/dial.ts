import { connect as connectNet, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { AbstractConnector } from "ioredis";
import { ServiceError } from "../../core/base/errors.js";
import { cutHandshakeCode } from "./redis-error.js";
import { ReplyBounds } from "./reply-bounds.js";
import type { MovingAddress, RedisAddress } from "./target.js";

/** Authorities, our own certificate and the like, as they are now: asked before each handshake. */
export type TlsSource = () => ConnectionOptions;

/** How a connection is made. */
export interface Dial {
  readonly address: RedisAddress | MovingAddress;
  /** Default: what Node trusts, and no certificate of our own. */
  readonly tls?: TlsSource;
  /** The longest silence amid a TCP connect or TLS handshake, in milliseconds. */
  readonly connectMs: number;
}

/** How long a closed socket may linger before it is destroyed. */
export const lingerMs = 100;

/**
 * Makes sockets for the client library, which by itself knows one address and one set of
 * certificates for as long as it lives.
 */
export function connectorFor({ address, tls, connectMs }: Dial): new () => AbstractConnector {
  return class extends AbstractConnector {
    constructor() {
      super(lingerMs);
    }

    override async connect(): Promise<Socket> {
      this.connecting = true;
      const place = address.kind === "moving" ? await findPlace(address) : address;
      // `disconnect` came in between, and would not know of the socket.
      if (!this.connecting) throw new ServiceError("STORE_UNAVAILABLE");
      const socket = openSocket(place, tls);
      limitConnect(socket, place, connectMs);
      limitReplies(socket);
      if (place.kind === "tcp" && place.isTls) nameCutHandshake(socket);
      // For as long as it lives: the library stops listening after a first error.
      socket.on("error", (error) => {
        this.firstError = error;
      });
      this.stream = socket;
      return socket;
    }
  };
}

async function findPlace({ find, isTls }: MovingAddress): Promise<RedisAddress> {
  const { host, port } = await find();
  return { kind: "tcp", host, port, isTls };
}

function openSocket(address: RedisAddress, tls: TlsSource | undefined): Socket {
  if (address.kind === "unix") return connectNet({ path: address.path });
  const { host, port, isTls } = address;
  if (!isTls) return connectNet({ host, port });
  return connectTls({ host, port, ...serverName(host), ...tls?.() });
}

/** The library would call both ends "ETIMEDOUT", and only one of them is about TLS. */
function limitConnect(socket: Socket, address: RedisAddress, connectMs: number): void {
  const isTls = address.kind === "tcp" && address.isTls;
  let isReached = false;
  socket.once("connect", () => {
    isReached = true;
  });
  const giveUp = (): void => {
    const detail = "The server did not answer the TLS handshake. Check that this port uses TLS.";
    const error = isReached
      ? new ServiceError("STORE_TLS_FAILED", detail)
      : new ServiceError("STORE_UNAVAILABLE", "The address cannot be reached.");
    socket.destroy(error);
  };
  socket.setTimeout(connectMs, giveUp);
  socket.once(isTls ? "secureConnect" : "connect", () => {
    socket.off("timeout", giveUp);
    socket.setTimeout(0);
  });
}

/** The library listens to the socket itself, so what it must not read must not get into it. */
function limitReplies(socket: Socket): void {
  const bounds = new ReplyBounds();
  const push = socket.push.bind(socket);
  socket.push = (bytes: unknown, ...rest) => {
    // What are no bytes is the end.
    if (!(bytes instanceof Uint8Array) || bounds.take(bytes)) return push(bytes, ...rest);
    socket.destroy(new ServiceError("STORE_PROTOCOL", "A reply is too long."));
    return false;
  };
}

/**
 * A server that speaks no TLS may hang up on a handshake as well as answer it with nonsense or with
 * nothing: which one depends on the random bytes in it. Node calls it a reset like any other.
 */
function nameCutHandshake(socket: Socket): void {
  const name = (error: Error): void => {
    if ("code" in error && error.code === "ECONNRESET") error.code = cutHandshakeCode;
  };
  socket.once("error", name);
  socket.once("secureConnect", () => socket.off("error", name));
}

/** What SNI asks for; addresses have no names. */
function serverName(host: string): ConnectionOptions {
  return /^[\d.]+$|:/.test(host) ? {} : { servername: host };
}
