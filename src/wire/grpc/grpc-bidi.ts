import type { Cancel } from "../../core/base/clock.js";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import type { Peer } from "../../core/base/peer.js";
import type { HeaderFields, ServerStream, StreamReader } from "../base/http2.js";
import { AnswerStream } from "./grpc-answers.js";
import { bytesMaxOf, type CallParts, deadlineMsOf, type GrpcConnection } from "./grpc-context.js";
import {
  isOneMessage,
  type MessageProblem,
  MessageReader,
  messageHeadBytes,
} from "./grpc-message.js";
import { metadataOf } from "./grpc-metadata.js";
import {
  compressed,
  malformedMessage,
  noRoom,
  tooLarge,
  tooSlow,
} from "./grpc-request-failures.js";
import { schedulePartialEnd } from "./partial-bytes.js";
import type { BidiAnswers, BidiContext, BidiHandler, BidiReader, CallFailure } from "./service.js";

/**
 * A call with messages in both directions. The caller's are handed over one at a time. Bytes that
 * arrive meanwhile are not returned to its windows, so that it stops sending.
 */
export class BidiCall implements StreamReader, BidiContext, BidiAnswers {
  readonly deadlineMs: number;
  readonly connection: GrpcConnection;
  readonly #stream: ServerStream;
  readonly #fields: HeaderFields;
  readonly #encoding: string | undefined;
  readonly #bytesMax: number;
  readonly #answers: AnswerStream;
  #reader: BidiReader = absentReader;
  /** What came in pieces, or while a message was being handled. */
  #waiting: MessageReader | undefined;
  /** Number of its bytes, as counted for the connection. */
  #waitingBytes = 0;
  /** Bytes to return to the windows when the current message is done. */
  #owedBytes = 0;
  #isWorking = false;
  #isHandingOver = false;
  #hasEnded = false;
  #isEndReported = false;
  #isSettled = false;
  #isGone = false;
  #cancelPartial: Cancel | undefined;

  constructor(call: CallParts) {
    this.#stream = call.stream;
    this.connection = call.connection;
    this.#fields = call.fields;
    this.#encoding = call.head.encoding;
    this.#bytesMax = bytesMaxOf(call);
    this.deadlineMs = deadlineMsOf(call);
    this.#answers = new AnswerStream(call.stream, call.connection);
  }

  /** Starts the handler. */
  open(handler: BidiHandler): void {
    try {
      this.#reader = handler(this, this);
    } catch (thrown) {
      this.fail(thrown);
      return;
    }
    // It may have sent too much before there was a reader to tell.
    if (this.#answers.isOver) this.#tellCancel();
  }

  get peer(): Peer {
    return this.connection.peer;
  }

  metadata(name: string): string | undefined {
    return metadataOf(this.#fields, name);
  }

  onData(bytes: Uint8Array, isEnd: boolean): void {
    if (isEnd) this.#hasEnded = true;
    if (this.#answers.isOver) {
      this.#stream.consumed(bytes.length);
      return;
    }
    if (this.#isWorking) this.#owedBytes += bytes.length;
    else this.#stream.consumed(bytes.length);
    if (!this.#isWorking && this.#waitingBytes === 0 && this.#isWhole(bytes)) {
      this.#handOver(bytes.subarray(messageHeadBytes));
    } else if (!this.#keep(bytes)) {
      return;
    }
    this.#advance();
  }

  onEnd(): void {
    this.#hasEnded = true;
    this.#advance();
  }

  onReset(): void {
    this.#isGone = true;
    this.#answers.abandon();
    this.#drop();
    if (this.#isSettled) this.#stream.release();
    else this.#reader.onCancel();
  }

  onDrain(): void {
    if (!this.#isSettled) this.#reader.onDrain();
  }

  send(bytes: Uint8Array): boolean {
    if (this.#answers.isOver) return true;
    const mayFollow = this.#answers.send(bytes);
    // It was too large and ended the call: the handler waits for nothing more.
    if (this.#answers.isOver) this.#tellCancel();
    return mayFollow;
  }

  next(): void {
    this.#isWorking = false;
    if (!this.#isHandingOver) this.#advance();
  }

  end(): void {
    if (!this.#settle()) return;
    this.#answers.end();
  }

  fail(thrown: unknown): void {
    const { onBug, toFailure } = this.connection.parts;
    const failure = toFailure(thrown);
    if (failure.isBug) onBug(thrown);
    if (!this.#settle()) return;
    this.#answers.fail(failure);
  }

  /** Ends the call because of what the caller sent. The handler learns that the call is over. */
  #refuse(failure: CallFailure): void {
    this.#answers.fail(failure);
    this.#tellCancel();
  }

  /** Ends the call because of a message that is too large, in the handler's way if it has one. */
  #refuseLarge(failure: CallFailure): void {
    if (!this.#isSettled) this.#reader.onTooLarge?.();
    if (!this.#answers.isOver) this.#refuse(failure);
  }

  /** Tells the handler that its answers go nowhere, though the caller may still be there. */
  #tellCancel(): void {
    this.#drop();
    this.#payWindow();
    if (!this.#isSettled) this.#reader.onCancel();
  }

  /** Hands over waiting messages one by one, until one is not done at once. */
  #advance(): void {
    while (!this.#isWorking && !this.#answers.isOver) {
      const read = this.#waiting?.read() ?? "partial";
      if (read === "message") {
        const message = this.#waiting?.message ?? new Uint8Array();
        this.#count();
        this.#forgetPartial();
        this.#handOver(message);
      } else if (read === "partial") {
        // What was read may have been large, and the call may stay open for long.
        if (this.#waitingBytes === 0) this.#closeWaiting();
        this.#watchPartial();
        this.#payWindow();
        if (this.#hasEnded) this.#tellEnd();
        return;
      } else {
        this.#refuseFor(read);
      }
    }
  }

  #refuseFor(problem: MessageProblem): void {
    if (problem === "tooLarge") this.#refuseLarge(tooLarge(this.#bytesMax));
    else this.#refuse(problem === "compressed" ? compressed(this.#encoding) : malformedMessage);
  }

  /** Limits the time of a message that has begun. */
  #watchPartial(): void {
    if (this.#waitingBytes === 0) return;
    const { clock } = this.connection.parts;
    this.#cancelPartial ??= schedulePartialEnd(clock, () => this.#refuse(tooSlow));
  }

  #forgetPartial(): void {
    this.#cancelPartial?.();
    this.#cancelPartial = undefined;
  }

  #handOver(message: Uint8Array): void {
    this.#isWorking = true;
    this.#isHandingOver = true;
    this.#reader.onMessage(message);
    this.#isHandingOver = false;
  }

  #tellEnd(): void {
    if (this.#isEndReported || this.#isSettled) return;
    this.#isEndReported = true;
    if (this.#waitingBytes > 0) this.#refuse(cutMessage);
    else this.#reader.onEnd();
  }

  #isWhole(bytes: Uint8Array): boolean {
    return isOneMessage(bytes, this.#bytesMax);
  }

  /** Keeps what cannot be handed over yet. Returns false if that ended the call. */
  #keep(bytes: Uint8Array): boolean {
    this.#waiting ??= new MessageReader(this.#bytesMax, this.connection.parts.spareBuffers);
    if (!this.connection.hasRoom(bytes.length)) {
      this.#refuseLarge(noRoom);
      return false;
    }
    this.#waiting.feed(bytes);
    this.#count();
    return true;
  }

  #count(): void {
    const waitingBytes = this.#waiting?.unreadBytes ?? 0;
    this.connection.countPartial(waitingBytes - this.#waitingBytes);
    this.#waitingBytes = waitingBytes;
  }

  /** Returns the bytes that came during a message to the windows, so that more may follow. */
  #payWindow(): void {
    if (this.#owedBytes === 0) return;
    this.#stream.consumed(this.#owedBytes);
    this.#owedBytes = 0;
  }

  /** Notes that the handler has ended the call. Returns false if it had ended it before. */
  #settle(): boolean {
    if (this.#isSettled) {
      this.connection.parts.onBug(new Error("A handler ended a call twice."));
      return false;
    }
    this.#isSettled = true;
    this.#drop();
    this.#payWindow();
    if (this.#isGone) this.#stream.release();
    return true;
  }

  #closeWaiting(): void {
    // The current message may be a view of it.
    if (!this.#isWorking && !this.#isHandingOver) this.#waiting?.close();
    this.#waiting = undefined;
  }

  #drop(): void {
    this.#closeWaiting();
    this.#count();
    this.#forgetPartial();
  }
}

/** Used until a handler has returned its reader. */
const absentReader: BidiReader = {
  onMessage() {},
  onEnd() {},
  onCancel() {},
  onDrain() {},
};

const cutMessage: CallFailure = {
  grpcStatus: grpcStatuses.internal,
  message: "The last message is incomplete.",
};
