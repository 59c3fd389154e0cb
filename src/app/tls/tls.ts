import type { Socket } from "node:net";
import { createServer, type Server, type TLSSocket } from "node:tls";
import type { Clock } from "../../core/base/clock.js";
import { exitCodes, StartFailure } from "../base/failure.js";
import type { Logger } from "../base/logger.js";
import { byLabel, type MetricGroup } from "../base/metrics.js";
import type { TlsChoice } from "../config/tls-choice.js";
import type { ClientSan } from "../options/tls-client-san.js";
import { secureContextOptions, type TlsMaterial } from "./tls-files.js";
import { clientRefusal, failureCause, type TlsRefusal, TlsRefusals } from "./tls-refusal.js";
import { type CertificateStatus, TlsReloader } from "./tls-reloader.js";

/** State of the gRPC port's TLS, for metrics. */
interface TlsStatus extends CertificateStatus {
  /** Connections refused before their first call, by cause. */
  readonly refusedByCause: ReadonlyMap<TlsRefusal, number>;
}

/** Protocol on secured connections: HTTP/2, negotiated with ALPN, or any other. */
type SecuredProtocol = "h2" | "other";

/** TLS whose files are read, before any port listens. */
export interface OpenTls {
  readonly status: TlsStatus;
  /**
   * Follows the files for one port. There may be several ports. Returns a function that takes
   * accepted connections, and passes them on when they are secured.
   */
  terminate(
    onSecure: (socket: TLSSocket) => void,
    protocol?: SecuredProtocol,
  ): (socket: Socket) => void;
  /** Stops following the files. */
  close(): void;
}

/**
 * Reads the TLS files.
 *
 * @throws StartFailure with all problems and the exit code of a wrong configuration
 */
export async function openTls(
  choice: TlsChoice,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Promise<OpenTls> {
  const reloader = new TlsReloader({ choice, clock, logger });
  const look = await reloader.look();
  if (look.kind !== "loaded") {
    const problems = look.kind === "refused" ? look.problems : [];
    const lines = ["The configuration is invalid:", ...problems.map((problem) => `  ${problem}`)];
    throw new StartFailure(exitCodes.usage, lines.join("\n"));
  }
  const refusals = new TlsRefusals({ clock, logger });
  let { material } = look;
  const terminations: TlsTermination[] = [];
  return {
    get status() {
      return { ...reloader.status, refusedByCause: refusals.countByCause };
    },
    terminate: (onSecure, protocol = "h2") => {
      const { clientSan } = choice;
      const termination = new TlsTermination({
        material,
        ...(clientSan === undefined ? {} : { clientSan }),
        protocol,
        onSecure,
        onRefused: (cause) => refusals.note(cause),
      });
      if (terminations.length === 0) {
        reloader.watch((newer: TlsMaterial) => {
          material = newer;
          for (const one of terminations) one.use(newer);
        });
      }
      terminations.push(termination);
      return (socket) => termination.accept(socket);
    },
    close: () => reloader.close(),
  };
}

/** Returns the metrics of the gRPC port's TLS, by kind. */
export function tlsMetrics(status: () => TlsStatus): MetricGroup {
  return {
    gauges: [
      {
        name: "headgate_tls_certificate_expiry_timestamp_seconds",
        help: "Expiry time of the gRPC port's active certificate.",
        read: (add) => add(status().expiryEpochUs / 1_000_000),
      },
      {
        name: "headgate_tls_certificate_stale",
        help: "1 while the newest TLS files are refused and older ones are active.",
        read: (add) => add(status().isStale ? 1 : 0),
      },
    ],
    counters: [
      {
        name: "headgate_tls_certificate_loads_total",
        help: "TLS files loaded and refused, including the first.",
        labelNames: ["result"],
        read: (add) => {
          add(status().loadedCount, { result: "loaded" });
          add(status().refusedCount, { result: "refused" });
        },
      },
      {
        name: "headgate_tls_refused_connections_total",
        help: "gRPC connections refused before their first call, by cause.",
        ...byLabel("cause", () => status().refusedByCause),
      },
    ],
  };
}

/** Maximum time of a handshake, in milliseconds. A healthy one takes a few round trips. */
const handshakeMsMax = 5_000;

/** Maximum number of handshakes at a time. A further connection is closed at once and may retry. */
export const handshakesMax = 1_000;

interface TlsTerminationParts {
  readonly material: TlsMaterial;
  /** Name required in a client's certificate. Used only if the material has client authorities. */
  readonly clientSan?: ClientSan;
  /** Default `h2`. */
  readonly protocol?: SecuredProtocol;
  /** Takes connections whose handshake is done and whose client is accepted. */
  readonly onSecure: (socket: TLSSocket) => void;
  readonly onRefused: (cause: TlsRefusal) => void;
  /** Default `handshakeMsMax`. */
  readonly handshakeMs?: number;
}

/**
 * Secures accepted connections: TLS 1.2 or newer, HTTP/2 by ALPN, and client certificates if
 * authorities are configured. It opens no port, and the transport behind it handles connections
 * like any others.
 */
export class TlsTermination {
  readonly #parts: TlsTerminationParts;
  readonly #server: Server;
  readonly #accepted = new Set<Socket>();
  readonly #secured = new Set<TLSSocket>();

  constructor(parts: TlsTerminationParts) {
    const { material, handshakeMs = handshakeMsMax, protocol = "h2" } = parts;
    const isClientAsked = material.clientAuthority !== undefined;
    this.#parts = parts;
    this.#server = createServer({
      ...secureContextOptions(material),
      ...(protocol === "h2" ? { ALPNProtocols: ["h2"] } : {}),
      requestCert: isClientAsked,
      rejectUnauthorized: isClientAsked,
      handshakeTimeout: handshakeMs,
    });
    this.#server.on("secureConnection", (socket) => this.#admit(socket));
    this.#server.on("tlsClientError", (error, socket) => {
      // The library reports a failed handshake, but leaves some of these sockets open.
      socket.destroy();
      parts.onRefused(failureCause(error, socket));
    });
  }

  /** Number of handshakes that have begun and not ended. */
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

  /** Uses this material for new handshakes. Open connections stay as they are. */
  use(material: TlsMaterial): void {
    this.#server.setSecureContext(secureContextOptions(material));
  }

  #admit(socket: TLSSocket): void {
    this.#secured.add(socket);
    socket.once("close", () => this.#secured.delete(socket));
    // Source: RFC 9113, section 9.2.1.
    socket.disableRenegotiation();
    const { clientSan, protocol = "h2" } = this.#parts;
    const isHttp2Missing = protocol === "h2" && socket.alpnProtocol !== "h2";
    const cause = isHttp2Missing ? "notHttp2" : clientRefusal(socket, clientSan);
    if (cause === undefined) {
      this.#parts.onSecure(socket);
      return;
    }
    socket.destroy();
    this.#parts.onRefused(cause);
  }
}
