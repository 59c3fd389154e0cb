import type { ServerDuplexStream } from "@grpc/grpc-js";
import type { BidiAnswers, BidiContext, BidiHandler, BidiReader } from "../../wire/grpc/service.js";
import { toCallFailure } from "../grpc/status.js";

/** A call with messages each way, as the library gives it. */
export type DuplexCall = ServerDuplexStream<Buffer, Buffer>;

/** What a call is served with. */
export interface GrpcJsBidiParts {
  readonly call: DuplexCall;
  readonly context: BidiContext;
  readonly onBug: (thrown: unknown) => void;
}

/** A call that is served. */
export interface ServedBidi {
  /** Has its handler answer a message larger than is taken; answers whether it did. */
  answerTooLarge(): boolean;
}

/** Serves one call with a handler. */
export function serveBidi(open: BidiHandler, parts: GrpcJsBidiParts): ServedBidi {
  const { call, context } = parts;
  const served = new GrpcJsBidiCall(parts);
  // Paused before anybody listens: messages come one at a time, each after `next`.
  call.pause();
  let reader: BidiReader;
  try {
    reader = open(context, served);
  } catch (thrown) {
    served.fail(thrown);
    return served;
  }
  served.listen(reader);
  return served;
}

class GrpcJsBidiCall implements BidiAnswers, ServedBidi {
  readonly #parts: GrpcJsBidiParts;
  #reader: BidiReader | undefined;
  #isWorking = false;
  #hasEnded = false;
  #isSettled = false;

  constructor(parts: GrpcJsBidiParts) {
    this.#parts = parts;
  }

  /** The handler has begun: its reader is told from now on. */
  listen(reader: BidiReader): void {
    if (this.#isSettled) return;
    const { call } = this.#parts;
    this.#reader = reader;
    call.on("data", (bytes: Buffer) => {
      call.pause();
      if (this.#isSettled) return;
      this.#isWorking = true;
      reader.onMessage(bytes);
    });
    call.once("end", () => {
      this.#hasEnded = true;
      // A paused stream tells its end with its last message.
      if (!this.#isWorking) this.#tellEnd();
    });
    call.once("cancelled", () => {
      if (!this.#isSettled) reader.onCancel();
    });
    call.on("drain", () => {
      if (!this.#isSettled) reader.onDrain();
    });
    call.resume();
  }

  send(bytes: Uint8Array): boolean {
    const { call } = this.#parts;
    if (this.#isSettled || call.cancelled) return true;
    return call.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }

  next(): void {
    this.#isWorking = false;
    if (this.#hasEnded) this.#tellEnd();
    else if (!this.#isSettled) this.#parts.call.resume();
  }

  end(): void {
    if (this.#settle()) this.#parts.call.end();
  }

  fail(thrown: unknown): void {
    const { grpcStatus, message, isBug } = toCallFailure(thrown);
    if (isBug) this.#parts.onBug(thrown);
    if (this.#settle()) this.#parts.call.emit("error", { code: grpcStatus, details: message });
  }

  answerTooLarge(): boolean {
    if (!this.#isSettled) this.#reader?.onTooLarge?.();
    return this.#isSettled;
  }

  #tellEnd(): void {
    if (!this.#isSettled) this.#reader?.onEnd();
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
