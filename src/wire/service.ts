/**
 * What a gRPC service is to a transport: paths and functions from bytes to bytes. Handlers know no
 * transport, transports know no message, so every transport of the decision port serves the same
 * services and must agree.
 */

/** A service: its full name and its methods by their own names. */
export interface ServiceHandlers {
  /** As in the .proto, for example `grpc.health.v1.Health`. */
  readonly name: string;
  readonly methods: readonly MethodHandler[];
}

/** One method. The path on the wire is `/<service name>/<method name>`. */
export type MethodHandler =
  | { readonly kind: "unary"; readonly name: string; readonly handle: UnaryHandler }
  | { readonly kind: "serverStream"; readonly name: string; readonly handle: ServerStreamHandler };

/** Answers one message with one message, or rejects with a `CallFailure`. */
export type UnaryHandler = (request: Uint8Array, call: CallContext) => Promise<Uint8Array>;

/** Answers one message with any number until it returns, or throws a `CallFailure`. */
export type ServerStreamHandler = (
  request: Uint8Array,
  call: StreamContext,
) => AsyncIterable<Uint8Array>;

/** What a handler may know of the call. */
export interface CallContext {
  /**
   * When the caller stops waiting (`grpc-timeout`), on the monotonic clock; Infinity without one.
   */
  readonly deadlineMs: number;
  /** The first value of a request metadata field, by its lower-case name. */
  metadata(name: string): string | undefined;
}

/** The context of a call that may last. */
export interface StreamContext extends CallContext {
  /** Aborted when the caller went away, the stream was reset or the server stops. */
  readonly signal: AbortSignal;
}

/** How a call fails: the gRPC status to answer with. Made in one file, `src/rpc/status.ts`. */
export interface CallFailure {
  /** 1 to 16, never 2 (UNKNOWN). Source: gRPC core, "Status codes and their use in gRPC". */
  readonly grpcStatus: number;
  /** Safe to send to the caller. */
  readonly message: string;
}
