/**
 * The remote end of a connection. What a stream claims about itself is only accepted as far as its
 * peer may claim it.
 */
export interface Peer {
  /** Whether the identity is from a verified certificate, or only from the remote address. */
  readonly kind: "certificate" | "address";
  /**
   * The certificate's first URI, else its first DNS name, else its subject, as in Envoy's own
   * filters. Without a certificate, the address; all peers of a Unix socket are one. It stays the
   * same if a certificate is renewed.
   */
  readonly identity: string;
  /** All URIs and DNS names in the certificate, which rules match. */
  readonly names: readonly string[];
}

/** The peer of a connection about which nothing is known. */
export const unknownPeer: Peer = { kind: "address", identity: "", names: [] };
