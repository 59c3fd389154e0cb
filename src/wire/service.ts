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

/**
 * Answers one message with one message. The request's bytes are the transport's: they hold until
 * the handler returns. It does not throw.
 *
 * A callback and not a promise: a promise in each layer costs a decision a quarter of a
 * microsecond, and what is settled together should be answered together.
 */
export type UnaryHandler = (request: Uint8Array, call: CallContext, answer: UnaryAnswer) => void;

/** Where a unary call's answer goes: told exactly once, maybe before the handler returns. */
export interface UnaryAnswer {
  /** The bytes are the transport's from now on. */
  reply(bytes: Uint8Array): void;
  /** @param thrown a `CallFailure`, or anything else for a bug */
  fail(thrown: unknown): void;
}

/** A handler of what is answered without waiting; what `answer` throws fails the call. */
export function answerAtOnce(answer: (request: Uint8Array) => Uint8Array): UnaryHandler {
  return (request, _call, to) => {
    let bytes: Uint8Array;
    try {
      bytes = answer(request);
    } catch (thrown) {
      to.fail(thrown);
      return;
    }
    to.reply(bytes);
  };
}

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
