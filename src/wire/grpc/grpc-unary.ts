import type { CallParts } from "./grpc-context.js";
import { writeMessageHead } from "./grpc-message.js";
import { OneRequestCall } from "./grpc-request.js";
import { tooLarge } from "./grpc-request-failures.js";
import { answerHead, okTrailers } from "./grpc-status.js";
import {
  type CallFailure,
  messageBytesMax,
  type UnaryAnswer,
  type UnaryMethod,
} from "./service.js";

/** A call with one request and one answer. It is its own reader, context and answer. */
export class UnaryCall extends OneRequestCall implements UnaryAnswer {
  readonly #method: UnaryMethod;
  #isAnswered = false;

  constructor(call: CallParts, method: UnaryMethod) {
    super(call);
    this.#method = method;
  }

  reply(bytes: Uint8Array): void {
    if (!this.#isFirst()) return;
    if (this.isGone) {
      this.leave();
      return;
    }
    if (bytes.length > messageBytesMax) {
      this.refuse(tooLarge(messageBytesMax));
      return;
    }
    const { stream, connection } = this;
    stream.sendHeaders(answerHead, false);
    writeMessageHead(connection.messageHead, bytes.length);
    stream.sendDataWithHead(connection.messageHead, bytes, false);
    stream.sendHeaders(okTrailers, true);
    this.leave();
  }

  fail(thrown: unknown): void {
    if (!this.#isFirst()) return;
    const { onBug, toFailure } = this.connection.parts;
    const failure = toFailure(thrown);
    if (failure.isBug) onBug(thrown);
    this.refuse(failure);
  }

  protected override begin(request: Uint8Array): void {
    const { clock, isLate, onDropped } = this.connection.parts;
    if (!isLate()) {
      this.#run(request);
      return;
    }
    // Deadlines count from when a call is read. A caller that gave up before has sent a reset,
    // which follows the call in what this turn reads.
    const held = new Uint8Array(request);
    clock.scheduleTurn(() => {
      if (!this.isGone) {
        this.#run(held);
        return;
      }
      onDropped();
      this.leave();
    });
  }

  protected override refuseLarge(failure: CallFailure): void {
    const { onTooLarge } = this.#method;
    if (onTooLarge === undefined) this.refuse(failure);
    else onTooLarge(this);
  }

  #run(request: Uint8Array): void {
    try {
      this.#method.handle(request, this, this);
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  #isFirst(): boolean {
    if (this.#isAnswered) {
      this.connection.parts.onBug(new Error("A handler answered a call twice."));
      return false;
    }
    this.#isAnswered = true;
    return true;
  }
}
