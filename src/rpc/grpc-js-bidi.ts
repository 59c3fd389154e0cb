import type { ServerDuplexStream } from "@grpc/grpc-js";
import type { BidiAnswers, BidiHandler, BidiReader, CallContext } from "../wire/service.js";
import { toCallFailure } from "./status.js";

/** A call with messages each way, as the library gives it. */
export type DuplexCall = ServerDuplexStream<Buffer, Buffer>;

/** What a call is served with. */
export interface GrpcJsBidiParts {
  readonly call: DuplexCall;
  readonly context: CallContext;
  readonly onBug: (thrown: unknown) => void;
}

/** Serves one call with a handler. */
export function serveBidi(open: BidiHandler, parts: GrpcJsBidiParts): void {
  const answers = new GrpcJsBidiAnswers(parts);
  const { call, context } = parts;
  // Paused before anybody listens: messages come one at a time, each after `next`.
  call.pause();
  let reader: BidiReader;
  try {
    reader = open(context, answers);
  } catch (thrown) {
    answers.fail(thrown);
    return;
  }
  call.on("data", (bytes: Buffer) => {
    call.pause();
    if (!answers.isSettled) reader.onMessage(bytes);
  });
  call.once("end", () => {
    if (!answers.isSettled) reader.onEnd();
  });
  call.once("cancelled", () => {
    if (!answers.isSettled) reader.onCancel();
  });
  call.on("drain", () => {
    if (!answers.isSettled) reader.onDrain();
  });
  if (!answers.isSettled) call.resume();
}

class GrpcJsBidiAnswers implements BidiAnswers {
  readonly #parts: GrpcJsBidiParts;
  #isSettled = false;

  constructor(parts: GrpcJsBidiParts) {
    this.#parts = parts;
  }

  /** Whether the handler has ended the call. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  send(bytes: Uint8Array): boolean {
    const { call } = this.#parts;
    if (this.#isSettled || call.cancelled) return true;
    return call.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }

  next(): void {
    if (!this.#isSettled) this.#parts.call.resume();
  }

  end(): void {
    if (this.#settle()) this.#parts.call.end();
  }

  fail(thrown: unknown): void {
    const { grpcStatus, message, isBug } = toCallFailure(thrown);
    if (isBug) this.#parts.onBug(thrown);
    if (this.#settle()) this.#parts.call.emit("error", { code: grpcStatus, details: message });
  }

  /** The handler has ended the call; answers whether somebody is to be told. */
  #settle(): boolean {
    const { call, onBug } = this.#parts;
    if (this.#isSettled) {
      onBug(new Error("A handler ended a call twice."));
      return false;
    }
    this.#isSettled = true;
    // What the caller still sends is read past, or its connection would stand still.
    call.resume();
    return !call.cancelled;
  }
}
