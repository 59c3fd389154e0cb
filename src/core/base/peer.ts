/**
 * Who is at the other end of a connection: what a stream says of itself holds within what its peer
 * may be.
 */
export interface Peer {
  /** Whether a certificate that was verified says it, or only where the connection comes from. */
  readonly kind: "certificate" | "address";
  /**
   * The first URI in the certificate, else its first DNS name, else its subject, as Envoy's own
   * filters name a peer; without a certificate the address, with the peers of a Unix socket as one.
   * It stays the same when a certificate is renewed.
   */
  readonly identity: string;
  /** All URIs and DNS names in the certificate, which rules go by. */
  readonly names: readonly string[];
}

/** The peer of a connection of which nothing is known. */
export const unknownPeer: Peer = { kind: "address", identity: "", names: [] };
