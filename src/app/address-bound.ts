import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../core/clock.js";
import type { Logger } from "./logger.js";
import { peerAddress } from "./peer-address.js";

/** What accepts connections on a port that peers share. */
export interface AddressBound {
  /** The most connections of one address at a time. */
  readonly perAddressMax: number;
  readonly onRefused: () => void;
}

/**
 * Accepts so many connections of an address at a time and closes others at once, so that one peer
 * cannot take all that a port has.
 */
export function boundByAddress(
  accept: (socket: Socket) => void,
  { perAddressMax, onRefused }: AddressBound,
): (socket: Socket) => void {
  const counts = new Map<string, number>();
  return (socket) => {
    const address = peerAddress(socket);
    // A Unix socket has none, and neither has a peer that has gone by now.
    if (address === "") {
      accept(socket);
      return;
    }
    const count = counts.get(address) ?? 0;
    if (count >= perAddressMax) {
      socket.destroy();
      onRefused();
      return;
    }
    counts.set(address, count + 1);
    socket.once("close", () => {
      const left = (counts.get(address) ?? 0) - 1;
      if (left > 0) counts.set(address, left);
      else counts.delete(address);
    });
    accept(socket);
  };
}

/** The same for a server of HTTP, which accepts by itself. */
export function boundHttpByAddress(server: Server, bound: AddressBound): void {
  server.prependListener(
    "connection",
    boundByAddress(() => {}, bound),
  );
}

/** Ports that peers share. */
export type SharedPort = "grpc" | "control" | "http" | "monitoring";

/** Connections that were refused for their address, by port. */
export type RefusedConnections = Record<SharedPort, number>;

/** Least time between two lines about one port: who is refused tries again at once. */
const reportMsMin = 60_000;

/** Counts refused connections, and logs them from time to time. */
export function createRefusedReport(
  counts: RefusedConnections,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): (port: SharedPort) => () => void {
  return (port) => {
    let quietUntilMs = Number.NEGATIVE_INFINITY;
    return () => {
      counts[port] += 1;
      const nowMs = clock.monotonicMs();
      if (nowMs < quietUntilMs) return;
      quietUntilMs = nowMs + reportMsMin;
      const remedy =
        port === "grpc" || port === "control"
          ? " Where all come through one load balancer, raise HEADGATE_CONNECTIONS_PER_ADDRESS_MAX."
          : "";
      const fact = `One address has as many connections to the ${port} port as it may.`;
      const refusedCount = counts[port];
      logger.warn({ event: "connectionsRefused", port, refusedCount }, fact + remedy);
    };
  };
}
