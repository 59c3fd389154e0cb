import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Peer } from "../../core/base/peer.js";
import { peerAddress } from "../base/address-bound.js";
import { identityNames } from "../options/tls-client-san.js";

/** Who is at the other end of a connection; where it is secured its handshake is done. */
export function peerOf(socket: Socket): Peer {
  return (socket instanceof TLSSocket ? certifiedPeer(socket) : undefined) ?? addressPeer(socket);
}

/** The kind stands before each identity, so that no address and no subject is taken for a name. */
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
