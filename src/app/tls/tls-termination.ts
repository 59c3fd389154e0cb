import type { Socket } from "node:net";
import { createServer, type Server, type TLSSocket } from "node:tls";
import type { ClientSan } from "../options/tls-client-san.js";
import { secureContextOptions, type TlsMaterial } from "./tls-files.js";
import { clientRefusal, failureCause, type TlsRefusal } from "./tls-refusal.js";

/** How long a handshake may take, in milliseconds; a healthy one takes a few round trips. */
const handshakeMsMax = 5_000;

/** The most handshakes at a time; one more connection is closed at once and may try again. */
export const handshakesMax = 1_000;

interface TlsTerminationParts {
  readonly material: TlsMaterial;
  /** What a client's certificate must hold; only where the material has authorities of clients. */
  readonly clientSan?: ClientSan;
  /** Takes connections whose handshake is done and whose client may come in. */
  readonly onSecure: (socket: TLSSocket) => void;
  readonly onRefused: (cause: TlsRefusal) => void;
  /** Default `handshakeMsMax`. */
  readonly handshakeMs?: number;
}

/**
 * Turns accepted connections into secured ones: TLS 1.2 or newer, HTTP/2 by ALPN, and clients'
 * certificates where authorities are named. It opens no port, and the transport behind it sees
 * connections like any others.
 */
export class TlsTermination {
  readonly #parts: TlsTerminationParts;
  readonly #server: Server;
  readonly #accepted = new Set<Socket>();
  readonly #secured = new Set<TLSSocket>();

  constructor(parts: TlsTerminationParts) {
    const { material, handshakeMs = handshakeMsMax } = parts;
    const isClientAsked = material.clientAuthority !== undefined;
    this.#parts = parts;
    this.#server = createServer({
      ...secureContextOptions(material),
      ALPNProtocols: ["h2"],
      requestCert: isClientAsked,
      rejectUnauthorized: isClientAsked,
      handshakeTimeout: handshakeMs,
    });
    this.#server.on("secureConnection", (socket) => this.#admit(socket));
    this.#server.on("tlsClientError", (error, socket) => {
      // The library tells of a failed handshake, and leaves some of them open.
      socket.destroy();
      parts.onRefused(failureCause(error, socket));
    });
  }

  /** Handshakes that have begun and not ended. */
  get handshakeCount(): number {
    return this.#accepted.size - this.#secured.size;
  }

  /** Begins a handshake. */
  accept(socket: Socket): void {
    if (this.handshakeCount >= handshakesMax) {
      socket.destroy();
      this.#parts.onRefused("tooManyHandshakes");
      return;
    }
    this.#accepted.add(socket);
    socket.once("close", () => this.#accepted.delete(socket));
    this.#server.emit("connection", socket);
  }

  /** Handshakes that begin from now on use this; connections that are open stay as they are. */
  use(material: TlsMaterial): void {
    this.#server.setSecureContext(secureContextOptions(material));
  }

  #admit(socket: TLSSocket): void {
    this.#secured.add(socket);
    socket.once("close", () => this.#secured.delete(socket));
    // Source: RFC 9113, section 9.2.1.
    socket.disableRenegotiation();
    const cause = clientRefusal(socket, this.#parts.clientSan);
    if (cause === undefined) {
      this.#parts.onSecure(socket);
      return;
    }
    socket.destroy();
    this.#parts.onRefused(cause);
  }
}
