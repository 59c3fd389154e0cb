import type { Peer } from "../../core/base/peer.js";

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
  | UnaryMethod
  | (NamedMethod & { readonly kind: "serverStream"; readonly handle: ServerStreamHandler })
  | (NamedMethod & { readonly kind: "bidi"; readonly open: BidiHandler });

/** What methods of any kind have. */
interface NamedMethod {
  readonly name: string;
  /** The largest message that it takes, in bytes. Absent: the port's. */
  readonly bytesMax?: number;
}

/** A method with one request and one answer. */
export interface UnaryMethod extends NamedMethod {
  readonly kind: "unary";
  readonly handle: UnaryHandler;
  /**
   * Answers a request that is larger than is taken, unread. Absent: it fails as RESOURCE_EXHAUSTED.
   */
  readonly onTooLarge?: (answer: UnaryAnswer) => void;
}

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

/**
 * Begins a call with any number of messages each way, and answers who reads the caller's. What it
 * throws fails the call.
 *
 * @param answers to be ended exactly once, also after `BidiReader.onCancel`
 */
export type BidiHandler = (call: BidiContext, answers: BidiAnswers) => BidiReader;

/** Told what a caller sends, in order; none of it throws. */
export interface BidiReader {
  /**
   * One message, whose bytes hold until this returns. The next comes after `BidiAnswers.next`, so
   * that a caller has one message in work, however many it sends.
   */
  onMessage(bytes: Uint8Array): void;
  /** The caller sends no more. */
  onEnd(): void;
  /** The caller has gone: what is sent now reaches nobody. Not told once the answers are ended. */
  onCancel(): void;
  /** More may be sent, after `BidiAnswers.send` has said to wait. */
  onDrain(): void;
  /**
   * The next message is larger than is taken, or more than there is room for: nothing more is read.
   * It ends the answers before it returns. Absent: the call fails as RESOURCE_EXHAUSTED.
   */
  onTooLarge?(): void;
}

/** Where the answers of such a call go. */
export interface BidiAnswers {
  /** The bytes are the transport's from now on. Answers false when it should wait for `onDrain`. */
  send(bytes: Uint8Array): boolean;
  /** The message that was handed over is done with. */
  next(): void;
  /** No more answers, and no failure: the call is over. */
  end(): void;
  /** @param thrown a `CallFailure`, or anything else for a bug */
  fail(thrown: unknown): void;
}

/** What a handler may know of the call. */
export interface CallContext {
  /**
   * When the caller stops waiting (`grpc-timeout`), on the monotonic clock; Infinity without one.
   */
  readonly deadlineMs: number;
  /**
   * The first value of a request metadata field, by its lower-case name. Of a name in `-bin` the
   * bytes, each as one character of Latin-1.
   */
  metadata(name: string): string | undefined;
}

/** The context of a call that may last. */
export interface StreamContext extends CallContext {
  /** Aborted when the caller went away, the stream was reset or the server stops. */
  readonly signal: AbortSignal;
}

/** The context of a call with any number of messages each way. */
export interface BidiContext extends CallContext {
  readonly peer: Peer;
}

/** How a call fails: the gRPC status to answer with. Made in one file, `src/rpc/grpc/status.ts`. */
export interface CallFailure {
  /** 1 to 16, never 2 (UNKNOWN). Source: gRPC core, "Status codes and their use in gRPC". */
  readonly grpcStatus: number;
  /** Safe to send to the caller. */
  readonly message: string;
}

/** A thrown value as its caller may see it. */
export interface MappedThrow extends CallFailure {
  /** Whether no failure of the environment explains it. */
  readonly isBug: boolean;
}

/** The most streams a client may have open on one connection; it opens another one above. */
export const concurrentStreamsMax = 1_000;

/**
 * The largest message in bytes: of those that are sent, and of those that are
 * received where no other bound is said.
 */
export const messageBytesMax = 1_048_576;
