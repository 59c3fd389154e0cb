import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Peer } from "../../core/base/peer.js";
import { peerAddress } from "../base/address-bound.js";
import { identityNames } from "../options/tls-client-san.js";

/** Returns the peer of a connection. If the connection is secured, its handshake must be done. */
export function peerOf(socket: Socket): Peer {
  return (socket instanceof TLSSocket ? certifiedPeer(socket) : undefined) ?? addressPeer(socket);
}

/** Puts the kind before each identity, so that no address and no subject is taken for a name. */
function certifiedPeer(socket: TLSSocket): Peer | undefined {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (certificate === undefined) return undefined;
  const { subjectAltName = "", subject } = certificate;
  const names = identityNames(subjectAltName);
  const [name] = names;
  if (name === undefined) return { kind: "certificate", identity: `subject:${subject}`, names };
  const kind = name.includes(":") ? "uri" : "dns";
  return { kind: "certificate", identity: `${kind}:${name}`, names };
}

function addressPeer(socket: Socket): Peer {
  return { kind: "address", identity: `address:${peerAddress(socket)}`, names: [] };
}
