/** Why a stream ended, or was never there: a closed set, for logs and labels. */
export type AdsEndReason =
  /** The files of the certificate, its key or the authority cannot be used. */
  | "credentials"
  /** No connection: name, port, TLS or certificate. */
  | "unreachable"
  /** No connection in time. */
  | "timeout"
  /** The server ended the stream without an error. */
  | "ended"
  /** The server refused the call: unauthenticated, no permission, no such service. */
  | "refused"
  /** A message larger than we take. */
  | "too_large"
  /** A message that is no discovery response. */
  | "unreadable"
  /** The connection broke, or nothing answered on it any more. */
  | "lost"
  /** Any other gRPC error. */
  | "failed";

/** How a stream ended. */
export interface AdsEnd {
  readonly reason: AdsEndReason;
  /** For a person: from the library or the server; holds no credential. */
  readonly detail: string;
}

/** What a stream tells; nothing after `onEnd`, and nothing after it was closed. */
export interface AdsStreamListener {
  /** There is a connection. */
  readonly onConnected: () => void;
  readonly onMessage: (bytes: Uint8Array) => void;
  /** Told once. */
  readonly onEnd: (end: AdsEnd) => void;
}

/** A stream of aggregated discovery on a connection of its own. */
export interface AdsStream {
  send(bytes: Uint8Array): void;
  /** Ends it, and its connection, at once. */
  close(): void;
}

/** Opens a stream; what it throws is no connection, for want of usable credentials. */
export type OpenAdsStream = (listener: AdsStreamListener) => AdsStream;
