import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../core/base/clock.js";
import { LogInterval } from "../../core/base/log-interval.js";
import { Tally } from "../../core/collections/tally.js";
import { formatIpAddress, parseIpAddress } from "../../policy/text/network.js";
import type { Logger } from "./logger.js";

/** Bytes of an IPv6 address that a network has for itself; the others are its host's to choose. */
const networkBytes = 8;

/**
 * Where a connection comes from, as peers are told apart by it: an address of version 4 is the same
 * one where it comes as one of version 6, and of version 6 the network of 64 bits counts, since one
 * host may have all addresses of it. Empty: a Unix socket.
 */
export function peerAddress({ remoteAddress = "" }: Pick<Socket, "remoteAddress">): string {
  const text = remoteAddress.replace(/^::ffff:(?=[\d.]+$)/i, "").replace(/%.*$/, "");
  const address = parseIpAddress(text);
  if (address === undefined || address.length === 4) return text;
  const network = Array.from(address, (byte, i) => (i < networkBytes ? byte : 0));
  return `${formatIpAddress(network)}/64`;
}

/** What accepts connections on a port that peers share. */
interface AddressBound {
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
  const counts = new Tally<string>();
  return (socket) => {
    const address = peerAddress(socket);
    // A Unix socket has none, and neither has a peer that has gone by now.
    if (address === "") {
      accept(socket);
      return;
    }
    if (counts.get(address) >= perAddressMax) {
      socket.destroy();
      onRefused();
      return;
    }
    counts.add(address, 1);
    socket.once("close", () => counts.add(address, -1));
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
export type SharedPort = "grpc" | "control" | "http" | "monitoring" | "resp";

/** Connections that were refused for their address, by port. */
export type RefusedConnections = Record<SharedPort, number>;

/** Least time between two lines about one port: who is refused tries again at once. */
const reportMsMin = 60_000;

/** Counts refused connections, and logs them from time to time. */
export function createRefusedReport(
  counts: RefusedConnections,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): (port: SharedPort) => () => void {
  const lines = new LogInterval<SharedPort>(reportMsMin);
  return (port) => () => {
    counts[port] += 1;
    if (!lines.begins(port, clock.monotonicMs())) return;
    const remedy =
      port === "grpc" || port === "control"
        ? " If all connections come through one load balancer, raise " +
          "HEADGATE_CONNECTIONS_PER_ADDRESS_MAX."
        : "";
    const fact = `One address has reached the maximum number of connections to the ${port} port.`;
    const refusedCount = counts[port];
    logger.warn({ event: "connectionsRefused", port, refusedCount }, fact + remedy);
  };
}
