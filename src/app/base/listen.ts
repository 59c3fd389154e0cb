import type { Server } from "node:net";
import { ServiceError } from "../../core/base/errors.js";

/** Where a server listens, and which settings said so. */
interface ListenPlace {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Names the port's setting in errors, for example GRPC_PORT. */
  readonly portSetting: string;
  /** Names the host's setting in errors. */
  readonly hostSetting: string;
  /** The most connections at a time; one more is closed at once. */
  readonly connectionsMax: number;
}

/** An address that is listened on. */
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
      // An accept that fails (no file descriptor left) costs that connection only.
      server.on("error", () => {});
      resolve({ kind: "tcp", host: place.host, port: boundPort(server) });
    });
  });
}

/** Connections that wait to be accepted. */
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
