import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../core/base/clock.js";
import { LogInterval } from "../../core/base/log-interval.js";
import { Tally } from "../../core/collections/tally.js";
import { formatIpAddress, parseIpAddress } from "../../policy/text/network.js";
import type { Logger } from "./logger.js";

/** Bytes of an IPv6 address that identify the network. A host chooses the others itself. */
const networkBytes = 8;

/**
 * Returns the address by which peers of connections are told apart. An IPv4 address that is mapped
 * to IPv6 counts as the IPv4 address. Of an IPv6 address, the network of 64 bits counts, because
 * one host may have all addresses of it. Empty: a Unix socket.
 */
export function peerAddress({ remoteAddress = "" }: Pick<Socket, "remoteAddress">): string {
  const text = remoteAddress.replace(/^::ffff:(?=[\d.]+$)/i, "").replace(/%.*$/, "");
  const address = parseIpAddress(text);
  if (address === undefined || address.length === 4) return text;
  const network = Array.from(address, (byte, i) => (i < networkBytes ? byte : 0));
  return `${formatIpAddress(network)}/64`;
}

/** Bounds of a port that peers share. */
interface AddressBound {
  /** Maximum number of connections of one address at the same time. */
  readonly perAddressMax: number;
  readonly onRefused: () => void;
}

/**
 * Accepts at most `perAddressMax` connections of an address at the same time, and closes others at
 * once, so that one peer cannot take all connections of a port.
 */
export function boundByAddress(
  accept: (socket: Socket) => void,
  { perAddressMax, onRefused }: AddressBound,
): (socket: Socket) => void {
  const counts = new Tally<string>();
  return (socket) => {
    const address = peerAddress(socket);
    // A Unix socket has no address, and neither has a peer that has already disconnected.
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

/** Bounds an HTTP server in the same way. The server accepts connections itself. */
export function boundHttpByAddress(server: Server, bound: AddressBound): void {
  server.prependListener(
    "connection",
    boundByAddress(() => {}, bound),
  );
}

/** Ports that peers share. */
export type SharedPort = "grpc" | "control" | "http" | "monitoring" | "resp";

/** Number of connections refused because of their address, by port. */
export type RefusedConnections = Record<SharedPort, number>;

/** Minimum time between two lines about one port, in ms: a refused peer tries again at once. */
const reportMsMin = 60_000;

/** Returns callbacks that count refused connections, and log them at most once in `reportMsMin`. */
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
