import type { ServerStream } from "../base/http2.js";
import type { GrpcConnection } from "./grpc-context.js";
import { writeMessageHead } from "./grpc-message.js";
import { tooLarge } from "./grpc-request-failures.js";
import { answerHead, failureAnswer, failureTrailers, okTrailers } from "./grpc-status.js";
import { type CallFailure, messageBytesMax } from "./service.js";

/** The answers of a call that may have many: headers before the first, a status at the end. */
export class AnswerStream {
  readonly #stream: ServerStream;
  readonly #connection: GrpcConnection;
  #hasBegun = false;
  #isOver = false;

  constructor(stream: ServerStream, connection: GrpcConnection) {
    this.#stream = stream;
    this.#connection = connection;
  }

  /** Whether nothing more can be sent. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Sends a message, or fails the call if it is too large. @returns whether more may follow now */
  send(bytes: Uint8Array): boolean {
    if (this.#isOver) return true;
    if (bytes.length > messageBytesMax) {
      this.fail(tooLarge(messageBytesMax));
      return true;
    }
    this.#sendHead();
    const { messageHead } = this.#connection;
    writeMessageHead(messageHead, bytes.length);
    return this.#stream.sendDataWithHead(messageHead, bytes, false);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sendHead();
    this.#stream.sendHeaders(okTrailers, true);
  }

  fail(failure: CallFailure): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const fields = this.#hasBegun ? failureTrailers(failure) : failureAnswer(failure);
    this.#stream.sendHeaders(fields, true);
  }

  /** Ends the answers because the caller has gone: nothing is sent any more. */
  abandon(): void {
    this.#isOver = true;
  }

  #sendHead(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#stream.sendHeaders(answerHead, false);
  }
}
