import { setMaxListeners } from "node:events";
import { createServer, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../core/base/clock.js";
import { isServiceError } from "../../core/base/errors.js";
import { type ListenAddress, listen } from "../base/listen.js";
import type { Logger } from "../base/logger.js";
import { identityNames } from "../options/tls-client-san.js";
import { TlsConnection } from "../tls/tls-connection.js";
import { AdminConnections, type AdminRequestHandler, isTlsSpoken } from "./admin-connections.js";
import type { AdminRequestParts, AdminRequests } from "./admin-requests.js";

/** Parts of the admin port. */
export interface AdminPortParts extends AdminRequestParts {
  readonly logger: Logger;
}

/** The open admin port. */
export interface AdminPort {
  /** Absent if there is none, or if its port is taken. */
  readonly address?: ListenAddress;
  /** Stops taking calls, and cuts those that do not end in time. */
  close(): Promise<void>;
}

/** Maximum number of connections at the same time. */
export const adminConnectionsMax = 500;

/** Maximum time for calls to end when the process ends, in milliseconds. */
const closeMsMax = 1_000;

/**
 * Opens the admin port, separate from decisions. If the port is taken, only a warning is logged, as
 * for the control port.
 */
export async function openAdminPort(parts: AdminPortParts): Promise<AdminPort> {
  const { choice, logger, clock } = parts;
  const stopping = new AbortController();
  // Each call listens until it ends. More than ten are not a leak, but Node would warn of one.
  setMaxListeners(0, stopping.signal);
  const connections = new AdminConnections(clock, requestHandler(parts, stopping.signal));
  const server = createServer({ noDelay: true }, acceptor(connections, parts));
  const { host, port } = choice;
  const setting = "HEADGATE_ADMIN_ADDR";
  const place = { host, port, hostSetting: setting, portSetting: setting };
  try {
    const address = await listen(server, { ...place, connectionsMax: adminConnectionsMax });
    const what = parts.console === undefined ? "is listening" : "is listening, and has the console";
    logger.info({ event: "adminListening", address }, `The admin port ${what}.`);
    return {
      address,
      close: async () => {
        server.close();
        stopping.abort();
        await closed(connections, clock);
      },
    };
  } catch (thrown) {
    connections.finish();
    if (!isServiceError(thrown)) throw thrown;
    logger.warn({ event: "adminPortFailed" }, `The admin port is off. ${thrown.message}`);
    return { close: async () => {} };
  }
}

/**
 * Loads the code that answers requests when the first request comes, or once the process serves:
 * its libraries and messages are a fifth of what a start would read.
 */
function requestHandler(parts: AdminPortParts, shutdownSignal: AbortSignal): AdminRequestHandler {
  let loading: Promise<AdminRequests> | undefined;
  const load = async (): Promise<AdminRequests> => {
    try {
      const { AdminRequests } = await import("./admin-requests.js");
      return new AdminRequests(parts, shutdownSignal);
    } catch (thrown) {
      // Perhaps no descriptor was left: the next request tries again.
      loading = undefined;
      throw thrown;
    }
  };
  return (request, response, peer) => {
    // The client has disconnected, so the error affects no caller.
    response.on("error", () => {});
    const closed = new Promise<void>((resolve) => response.once("close", resolve));
    loading ??= load();
    loading
      .then((requests) => requests.answer(request, response, { peer, closed }))
      .catch((thrown: unknown) => {
        parts.onBug(thrown);
        response.destroy?.();
      });
  };
}

/** Uses TLS as on the gRPC port, except for a port that only this machine can reach. */
function acceptor(
  connections: AdminConnections,
  { choice, tls }: Pick<AdminPortParts, "choice" | "tls">,
): (socket: Socket) => void {
  if (tls === undefined || !isTlsSpoken({ choice, tls })) {
    return (socket) => {
      const address = socket.remoteAddress ?? "";
      connections.accept(socket, { address, certificateNames: [] });
    };
  }
  return tls.terminate((socket) => {
    const address = socket.remoteAddress ?? "";
    const certificateNames = namesOf(socket);
    connections.accept(new TlsConnection(socket), { address, certificateNames });
  });
}

function namesOf(socket: TLSSocket): readonly string[] {
  if (!socket.authorized) return [];
  return identityNames(socket.getPeerX509Certificate()?.subjectAltName ?? "");
}

function closed(connections: AdminConnections, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const startMs = clock.monotonicMs();
    const look = (): void => {
      // Repeated, because connections that finish their calls become idle.
      connections.finish();
      const isLate = clock.monotonicMs() - startMs >= closeMsMax;
      if (isLate) connections.destroy();
      if (isLate || connections.openCount === 0) resolve();
      else clock.schedule(10, look);
    };
    look();
  });
}
