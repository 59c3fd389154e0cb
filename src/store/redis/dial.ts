import { connect as connectNet, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { AbstractConnector } from "ioredis";
import { ServiceError } from "../../core/base/errors.js";
import { cutHandshakeCode } from "./redis-error.js";
import { ReplyBounds } from "./reply-bounds.js";
import type { MovingAddress, RedisAddress } from "./target.js";

/** Returns the current TLS settings (CAs, client certificate). Called before each handshake. */
export type TlsSource = () => ConnectionOptions;

/** How a connection is made. */
export interface Dial {
  readonly address: RedisAddress | MovingAddress;
  /** Default: the CAs that Node trusts, and no client certificate. */
  readonly tls?: TlsSource;
  /** Maximum silence during a TCP connect or TLS handshake, in milliseconds. */
  readonly connectMs: number;
}

/** How long a closed socket may linger before it is destroyed, in milliseconds. */
export const lingerMs = 100;

/**
 * Returns a connector that opens sockets for the client library. The library itself supports only
 * one fixed address and one fixed set of certificates.
 */
export function connectorFor({ address, tls, connectMs }: Dial): new () => AbstractConnector {
  return class extends AbstractConnector {
    constructor() {
      super(lingerMs);
    }

    override async connect(): Promise<Socket> {
      this.connecting = true;
      const place = address.kind === "moving" ? await findPlace(address) : address;
      // `disconnect` was called meanwhile, and would not know about the socket.
      if (!this.connecting) throw new ServiceError("STORE_UNAVAILABLE");
      const socket = openSocket(place, tls);
      limitConnect(socket, place, connectMs);
      limitReplies(socket);
      if (place.kind === "tcp" && place.isTls) nameCutHandshake(socket);
      // For the socket's lifetime: the library stops listening after the first error.
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

/** Limits the connect time. The library would report TCP and TLS time-outs alike, as ETIMEDOUT. */
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

/** Limits replies before they enter the socket, because the library listens to it directly. */
function limitReplies(socket: Socket): void {
  const bounds = new ReplyBounds();
  const push = socket.push.bind(socket);
  socket.push = (bytes: unknown, ...rest) => {
    // Anything but bytes is the end of the stream.
    if (!(bytes instanceof Uint8Array) || bounds.take(bytes)) return push(bytes, ...rest);
    socket.destroy(new ServiceError("STORE_PROTOCOL", "A reply is too long."));
    return false;
  };
}

/**
 * Gives a handshake that the server closes its own error code. A server without TLS may close the
 * connection, answer with invalid data or not answer, depending on the handshake's random bytes.
 * Node reports the close like any other reset.
 */
function nameCutHandshake(socket: Socket): void {
  const name = (error: Error): void => {
    if ("code" in error && error.code === "ECONNRESET") error.code = cutHandshakeCode;
  };
  socket.once("error", name);
  socket.once("secureConnect", () => socket.off("error", name));
}

/** Returns the server name for SNI. IP addresses have none. */
function serverName(host: string): ConnectionOptions {
  return /^[\d.]+$|:/.test(host) ? {} : { servername: host };
}
