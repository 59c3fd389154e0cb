import type { Socket } from "node:net";
import { formatIpAddress, parseIpAddress } from "../../policy/text/network.js";

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
