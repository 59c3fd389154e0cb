import type { Cancel } from "../../core/base/clock.js";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import type { HeaderFields, ServerStream, StreamReader } from "../base/http2.js";
import { bytesMaxOf, type CallParts, deadlineMsOf, type GrpcConnection } from "./grpc-context.js";
import { isOneMessage, MessageReader, messageHeadBytes } from "./grpc-message.js";
import { metadataOf } from "./grpc-metadata.js";
import {
  compressed,
  malformedMessage,
  noRoom,
  secondRequest,
  tooLarge,
  tooSlow,
} from "./grpc-request-failures.js";
import { failureAnswer } from "./grpc-status.js";
import { schedulePartialEnd } from "./partial-bytes.js";
import type { CallContext, CallFailure } from "./service.js";

/**
 * Reads the one request of a call, and refuses invalid ones. A request that came in one frame is
 * handed over as it was read, without a copy.
 */
export abstract class OneRequestCall implements StreamReader, CallContext {
  readonly deadlineMs: number;
  protected readonly stream: ServerStream;
  protected readonly connection: GrpcConnection;
  readonly #fields: HeaderFields;
  readonly #encoding: string | undefined;
  readonly #bytesMax: number;
  #phase: "reading" | "working" | "over" = "reading";
  #isGone = false;
  /** The parts so far of a request that did not come in one piece. */
  #partial: MessageReader | undefined;
  #partialBytes = 0;
  #isWhole = false;
  #cancelPartial: Cancel = () => {};

  constructor(call: CallParts) {
    this.stream = call.stream;
    this.connection = call.connection;
    this.#fields = call.fields;
    this.#encoding = call.head.encoding;
    this.#bytesMax = bytesMaxOf(call);
    this.deadlineMs = deadlineMsOf(call);
  }

  /**
   * Handles a complete request, whose bytes are valid until this returns. `refuse` or `leave` must
   * follow when the work for it has ended.
   */
  protected abstract begin(request: Uint8Array): void;

  /** Whether the caller has gone, so that nothing may be sent. */
  protected get isGone(): boolean {
    return this.#isGone;
  }

  metadata(name: string): string | undefined {
    return metadataOf(this.#fields, name);
  }

  onData(bytes: Uint8Array, isEnd: boolean): void {
    this.stream.consumed(bytes.length);
    if (this.#phase !== "reading") return;
    if (isEnd && this.#partial === undefined && isOneMessage(bytes, this.#bytesMax)) {
      this.#phase = "working";
      this.begin(bytes.subarray(messageHeadBytes));
      return;
    }
    if (bytes.length > 0) this.#collect(bytes);
    if (isEnd) this.onEnd();
  }

  onEnd(): void {
    if (this.#phase !== "reading") return;
    if (this.#partial === undefined || !this.#isWhole) {
      this.refuse({
        grpcStatus: grpcStatuses.unimplemented,
        message: "The call contains no message.",
      });
      return;
    }
    this.#phase = "working";
    const { message } = this.#partial;
    this.#dropPartial();
    this.begin(message);
  }

  onReset(): void {
    this.#isGone = true;
    if (this.#phase !== "working") this.leave();
  }

  onDrain(): void {
    // The only answer is sent as a whole: the connection keeps what does not leave at once.
  }

  /** Ends the call with a failure, if nothing of its answer was sent. */
  protected refuse(failure: CallFailure): void {
    if (!this.#isGone) this.stream.sendHeaders(failureAnswer(failure), true);
    this.leave();
  }

  /** Ends the call because its request is too large, or there is no room for it. */
  protected refuseLarge(failure: CallFailure): void {
    this.refuse(failure);
  }

  /** Ends the work for the call, after everything that could be sent was sent. */
  protected leave(): void {
    this.#phase = "over";
    this.#dropPartial();
    if (this.#isGone) this.stream.release();
  }

  #collect(bytes: Uint8Array): void {
    const failure = this.#problemOf(bytes);
    if (failure !== undefined) this.#refuseFor(failure);
  }

  #refuseFor(failure: CallFailure): void {
    if (failure.grpcStatus === grpcStatuses.resourceExhausted) this.refuseLarge(failure);
    else this.refuse(failure);
  }

  /** Takes a part of the request. Returns a failure if the request is invalid. */
  #problemOf(bytes: Uint8Array): CallFailure | undefined {
    const { connection } = this;
    if (!connection.hasRoom(bytes.length)) return noRoom;
    connection.countPartial(bytes.length);
    this.#partialBytes += bytes.length;
    if (this.#isWhole) return secondRequest;
    if (this.#partial === undefined) {
      this.#partial = new MessageReader(this.#bytesMax);
      this.#cancelPartial = schedulePartialEnd(connection.parts.clock, () => this.#giveUp());
    }
    this.#partial.feed(bytes);
    const read = this.#partial.read();
    if (read === "partial") return undefined;
    if (read === "tooLarge") return tooLarge(this.#bytesMax);
    if (read === "compressed") return compressed(this.#encoding);
    if (read === "malformed") return malformedMessage;
    this.#isWhole = true;
    return this.#partial.unreadBytes > 0 ? secondRequest : undefined;
  }

  /** Otherwise, a caller that stops within a request could hold memory for as long as it likes. */
  #giveUp(): void {
    if (this.#phase === "reading") this.refuse(tooSlow);
  }

  #dropPartial(): void {
    this.#cancelPartial();
    this.connection.countPartial(-this.#partialBytes);
    this.#partialBytes = 0;
    this.#partial = undefined;
  }
}
