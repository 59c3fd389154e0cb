import { Duplex } from "node:stream";
import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
} from "@grpc/grpc-js";
import type { Cancel, Clock } from "../../core/base/clock.js";
import {
  type MessageProblem,
  MessageReader,
  messageHeadBytes,
  writeMessageHead,
} from "../../wire/grpc/grpc-message.js";
import {
  compressed,
  malformedMessage,
  noRoom,
  tooLarge,
  tooSlow,
} from "../../wire/grpc/grpc-request-failures.js";
import { acceptedEncodings } from "../../wire/grpc/grpc-status.js";
import { type PartialBytes, schedulePartialEnd } from "../../wire/grpc/partial-bytes.js";
import type { CallFailure } from "../../wire/grpc/service.js";

/** What bounds the unfinished requests of a library's call. */
export interface UnfinishedParts {
  /** Shared by all calls of a server. */
  readonly partialBytes: PartialBytes;
  readonly clock: Clock;
  /** The largest message that is read, in bytes. */
  readonly bytesMax: number;
  /** Whether the call has one request, which is whole when the caller sends no more. */
  readonly hasOneRequest: boolean;
  /** By its identity. */
  readonly peerOf: (stream: Duplex) => string;
  /**
   * Answers the call where a message is larger than is read, or there is no room for it; answers
   * whether it did. If not, the call fails as RESOURCE_EXHAUSTED.
   */
  readonly onTooLarge: (stream: Duplex) => boolean;
}

/**
 * Bounds what a call keeps of requests that have begun and not ended: the library keeps up to its
 * largest message of each call, for ever, and decompresses what it gets. Its decoder is a private
 * field, met with doubt: where there is none to replace, the call has the library's own bounds.
 */
export function boundUnfinished(
  call: ServerInterceptingCallInterface,
  parts: UnfinishedParts,
): ServerInterceptingCall {
  const stream: unknown = Reflect.get(call, "stream");
  if (!(stream instanceof Duplex) || !hasDecoder(call)) return new ServerInterceptingCall(call);
  Reflect.set(call, "decoder", new BoundedDecoder(call, stream, parts));
  return new ServerInterceptingCall(call);
}

function hasDecoder(call: object): boolean {
  const decoder: unknown = Reflect.get(call, "decoder");
  return typeof Reflect.get(Object(decoder), "write") === "function";
}

/** The library takes the field away. */
function encodingOf(call: object): string | undefined {
  const encoding: unknown = Reflect.get(call, "incomingEncoding");
  return typeof encoding === "string" ? encoding : undefined;
}

/**
 * Stands for the library's decoder. It copies what it keeps: a part of one byte would hold all that
 * was read from the socket with it.
 */
class BoundedDecoder {
  readonly #call: ServerInterceptingCallInterface;
  readonly #stream: Duplex;
  readonly #parts: UnfinishedParts;
  readonly #peer: string;
  #reader: MessageReader | undefined;
  /** Bytes of the one request that is whole, while its caller may still send more. */
  #wholeBytes = 0;
  #countedBytes = 0;
  #cancel: Cancel | undefined;
  #isOver = false;

  constructor(call: ServerInterceptingCallInterface, stream: Duplex, parts: UnfinishedParts) {
    this.#call = call;
    this.#stream = stream;
    this.#parts = parts;
    this.#peer = parts.peerOf(stream);
    stream.once("end", () => this.#leave());
    stream.once("close", () => this.#leave());
  }

  /** As the library calls it: answers the messages that are whole now, each with its head. */
  write(bytes: Buffer): Buffer[] {
    if (this.#isOver) return [];
    if (!this.#hasRoom(bytes.length)) {
      this.#refuseLarge(noRoom);
      return [];
    }
    this.#reader ??= new MessageReader(this.#parts.bytesMax);
    this.#reader.feed(bytes);
    const messages: Buffer[] = [];
    let read = this.#reader.read();
    while (read === "message") {
      const framed = withHead(this.#reader.message);
      messages.push(framed);
      if (this.#parts.hasOneRequest) this.#wholeBytes += framed.length;
      else this.#stopWaiting();
      read = this.#reader.read();
    }
    if (read === "partial") this.#count();
    else this.#refuseFor(read);
    return messages;
  }

  #refuseFor(problem: MessageProblem): void {
    if (problem === "tooLarge") this.#refuseLarge(tooLarge(this.#parts.bytesMax));
    else if (problem === "malformed") this.#fail(malformedMessage);
    else this.#fail(compressed(encodingOf(this.#call)));
  }

  #hasRoom(byteCount: number): boolean {
    return this.#parts.partialBytes.hasRoom(this.#peer, byteCount);
  }

  #count(): void {
    const unreadBytes = this.#reader?.unreadBytes ?? 0;
    // What was read may have been large, and the call may stay open for long.
    if (unreadBytes === 0) this.#reader = undefined;
    this.#countAs(unreadBytes + this.#wholeBytes);
    if (this.#countedBytes === 0) this.#stopWaiting();
    else this.#cancel ??= this.#wait();
  }

  #countAs(byteCount: number): void {
    this.#parts.partialBytes.count(this.#peer, byteCount - this.#countedBytes);
    this.#countedBytes = byteCount;
  }

  #wait(): Cancel {
    return schedulePartialEnd(this.#parts.clock, () => {
      this.#cancel = undefined;
      // The caller cannot go on while a message before this one is in work.
      if (this.#stream.isPaused()) this.#cancel = this.#wait();
      else this.#fail(tooSlow);
    });
  }

  #stopWaiting(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #refuseLarge(failure: CallFailure): void {
    this.#leave();
    if (!this.#parts.onTooLarge(this.#stream)) this.#fail(failure);
  }

  #fail({ grpcStatus, message }: CallFailure): void {
    this.#leave();
    const metadata = new Metadata();
    metadata.set(...acceptedEncodings);
    this.#call.sendStatus({ code: grpcStatus, details: message, metadata });
  }

  /** Nothing is kept from now on. */
  #leave(): void {
    this.#isOver = true;
    this.#reader = undefined;
    this.#countAs(0);
    this.#stopWaiting();
  }
}

function withHead(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(messageHeadBytes + message.length);
  writeMessageHead(framed, message.length);
  framed.set(message, messageHeadBytes);
  return framed;
}
