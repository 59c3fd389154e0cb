import type { Server } from "node:net";
import { ServiceError } from "../../core/base/errors.js";

/** The address that a server listens on, and the settings that it comes from. */
interface ListenPlace {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** The port's setting, for errors. Example: GRPC_PORT. */
  readonly portSetting: string;
  /** The host's setting, for errors. */
  readonly hostSetting: string;
  /** Maximum number of connections at the same time. Further ones are closed at once. */
  readonly connectionsMax: number;
}

/** An address that a server listens on. */
export interface ListenAddress {
  readonly kind: "tcp";
  readonly host: string;
  readonly port: number;
}

/**
 * Opens a port.
 *
 * @throws ServiceError LISTEN_FAILED naming the port, the setting and what to do
 */
export function listen(server: Server, place: ListenPlace): Promise<ListenAddress> {
  return new Promise((resolve, reject) => {
    const onError = (error: unknown): void => {
      reject(new ServiceError("LISTEN_FAILED", listenWords(error, place), { cause: error }));
    };
    server.maxConnections = place.connectionsMax;
    server.once("error", onError);
    server.listen({ host: place.host, port: place.port, backlog: backlogMax }, () => {
      server.off("error", onError);
      // If accepting fails (no file descriptor left), only that connection is lost.
      server.on("error", () => {});
      resolve({ kind: "tcp", host: place.host, port: boundPort(server) });
    });
  });
}

/** Maximum number of connections that wait to be accepted. */
const backlogMax = 1_024;

function boundPort(server: Server): number {
  const address = server.address();
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

function listenWords(error: unknown, place: ListenPlace): string {
  const { host, port, portSetting, hostSetting } = place;
  const code: unknown = Reflect.get(Object(error), "code");
  if (code === "EADDRINUSE") {
    const remedy = `stop the process that listens there, or set ${portSetting} to another port.`;
    return `Port ${port} (${portSetting}) is in use on ${host}: ${remedy}`;
  }
  if (code === "EACCES") {
    const remedy = `set ${portSetting} to a port above 1023.`;
    return `This user may not open port ${port} (${portSetting}): ${remedy}`;
  }
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return `${hostSetting} is not an address of this machine: set it to 0.0.0.0 or 127.0.0.1.`;
  }
  return `Port ${port} (${portSetting}) on ${host} cannot be opened: ${String(code)}.`;
}
