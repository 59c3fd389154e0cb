import type { Peer } from "../../core/base/peer.js";

/**
 * The interface of a gRPC service for transports: paths, and functions from bytes to bytes.
 * Handlers do not know transports, and transports do not know messages, so every transport of the
 * decision port serves the same services and must agree.
 */

/** A service: its full name and its methods by their own names. */
export interface ServiceHandlers {
  /** As in the .proto, for example `grpc.health.v1.Health`. */
  readonly name: string;
  readonly methods: readonly MethodHandler[];
}

/** One method. The path on the wire is `/<service name>/<method name>`. */
export type MethodHandler =
  | UnaryMethod
  | (NamedMethod & { readonly kind: "serverStream"; readonly handle: ServerStreamHandler })
  | (NamedMethod & { readonly kind: "bidi"; readonly open: BidiHandler });

/** Properties of methods of any kind. */
interface NamedMethod {
  readonly name: string;
  /** Maximum size of a received message, in bytes. Absent: the port's. */
  readonly bytesMax?: number;
}

/** A method with one request and one answer. */
export interface UnaryMethod extends NamedMethod {
  readonly kind: "unary";
  readonly handle: UnaryHandler;
  /** Answers a request that is too large, unread. Absent: it fails as RESOURCE_EXHAUSTED. */
  readonly onTooLarge?: (answer: UnaryAnswer) => void;
}

/**
 * Answers one message with one message. The request's bytes belong to the transport, and are valid
 * until the handler returns. It does not throw.
 *
 * It uses a callback, because a promise in each layer costs a decision a quarter of a microsecond,
 * and what is settled together should be answered together.
 */
export type UnaryHandler = (request: Uint8Array, call: CallContext, answer: UnaryAnswer) => void;

/** Receives a unary call's answer, exactly once, possibly before the handler returns. */
export interface UnaryAnswer {
  /** The bytes belong to the transport from now on. */
  reply(bytes: Uint8Array): void;
  /** @param thrown a `CallFailure`, or anything else for a bug */
  fail(thrown: unknown): void;
}

/** Returns a handler that answers without waiting. What `answer` throws fails the call. */
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

/**
 * Begins a call with any number of messages in each direction, and returns the reader of the
 * caller's. What it throws fails the call.
 *
 * @param answers must be ended exactly once, also after `BidiReader.onCancel`
 */
export type BidiHandler = (call: BidiContext, answers: BidiAnswers) => BidiReader;

/** Receives what a caller sends, in order. None of its methods throws. */
export interface BidiReader {
  /**
   * Handles one message, whose bytes are valid until this returns. The next comes after
   * `BidiAnswers.next`, so only one message of a caller is in progress, however many it sends.
   */
  onMessage(bytes: Uint8Array): void;
  /** Called when the caller sends no more. */
  onEnd(): void;
  /** Called when the caller has gone, so nothing reaches it. Not called once the answers ended. */
  onCancel(): void;
  /** Called when more may be sent, after `BidiAnswers.send` has said to wait. */
  onDrain(): void;
  /**
   * Called when the next message is too large, or there is no room for it: nothing more is read. It
   * ends the answers before it returns. Absent: the call fails as RESOURCE_EXHAUSTED.
   */
  onTooLarge?(): void;
}

/** Receives the answers of such a call. */
export interface BidiAnswers {
  /** Sends bytes, which then belong to the transport. Returns false to wait for `onDrain`. */
  send(bytes: Uint8Array): boolean;
  /** Reports that the message that was handed over is done. */
  next(): void;
  /** Ends the call without a failure. No more answers follow. */
  end(): void;
  /** @param thrown a `CallFailure`, or anything else for a bug */
  fail(thrown: unknown): void;
}

/** What a handler may know about the call. */
export interface CallContext {
  /**
   * When the caller stops waiting (`grpc-timeout`), on the monotonic clock. Infinity without one.
   */
  readonly deadlineMs: number;
  /**
   * Returns the first value of a request metadata field, by its lower-case name. For a name that
   * ends in `-bin`, returns the bytes, each as one character of Latin-1.
   */
  metadata(name: string): string | undefined;
}

/** The context of a call that may last. */
export interface StreamContext extends CallContext {
  /** Aborted when the caller went away, the stream was reset or the server stops. */
  readonly signal: AbortSignal;
}

/** The context of a call with any number of messages in each direction. */
export interface BidiContext extends CallContext {
  readonly peer: Peer;
}

/** How a call fails: the gRPC status to answer with. `src/rpc/grpc/status.ts` maps errors to it. */
export interface CallFailure {
  /** 1 to 16, never 2 (UNKNOWN). Source: gRPC core, "Status codes and their use in gRPC". */
  readonly grpcStatus: number;
  /** Safe to send to the caller. */
  readonly message: string;
}

/** A thrown value, as its caller may see it. */
export interface MappedThrow extends CallFailure {
  /** Whether no failure of the environment explains it. */
  readonly isBug: boolean;
}

/** Maximum streams of a client on one connection. If it needs more, it opens another one. */
export const concurrentStreamsMax = 1_000;

/**
 * Maximum size of a message in bytes: of sent ones, and of received ones if no other limit is set.
 */
export const messageBytesMax = 1_048_576;
