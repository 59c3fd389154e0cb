import type { Cancel } from "../../core/base/clock.js";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import { AnswerStream } from "./grpc-answers.js";
import type { CallParts, Stoppable } from "./grpc-context.js";
import { OneRequestCall } from "./grpc-request.js";
import type { ServerStreamHandler, StreamContext } from "./service.js";

/** A call with one request and any number of answers. */
export class ServerStreamCall extends OneRequestCall implements StreamContext, Stoppable {
  readonly #handle: ServerStreamHandler;
  readonly #answers: AnswerStream;
  readonly #abort = new AbortController();
  #cancelDeadline: Cancel | undefined;
  #wake: (() => void) | undefined;

  constructor(call: CallParts, handle: ServerStreamHandler) {
    super(call);
    this.#handle = handle;
    this.#answers = new AnswerStream(call.stream, call.connection);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Tells the handler to stop. The call ends when the handler returns. */
  stop(): void {
    this.#abort.abort();
    this.#wake?.();
  }

  override onReset(): void {
    this.#answers.abandon();
    super.onReset();
    this.stop();
  }

  override onDrain(): void {
    this.#wake?.();
  }

  protected override begin(request: Uint8Array): void {
    const { connection } = this;
    const { clock, onBug, toFailure } = connection.parts;
    connection.openStreams.add(this);
    if (this.deadlineMs !== Number.POSITIVE_INFINITY) {
      const leftMs = this.deadlineMs - clock.monotonicMs();
      this.#cancelDeadline = clock.schedule(leftMs, () => this.#passDeadline());
    }
    // The handler starts when its first answer is requested, which is after the bytes are gone.
    this.#pump(new Uint8Array(request))
      .catch((thrown: unknown) => {
        const failure = toFailure(thrown);
        if (failure.isBug) onBug(thrown);
        this.#answers.fail(failure);
      })
      .catch(onBug)
      .finally(() => {
        this.#cancelDeadline?.();
        connection.openStreams.delete(this);
        this.leave();
      });
    if (connection.openStreams.isClosing) this.stop();
  }

  async #pump(request: Uint8Array): Promise<void> {
    for await (const bytes of this.#handle(request, this)) {
      if (this.signal.aborted || this.#answers.isOver) break;
      if (!this.#answers.send(bytes)) await this.#drained();
      // A message that was too large has ended the call.
      if (this.#answers.isOver) break;
    }
    if (!this.connection.openStreams.isClosing) this.#answers.end();
    else {
      const message = "The server is stopping.";
      this.#answers.fail({ grpcStatus: grpcStatuses.unavailable, message });
    }
  }

  #passDeadline(): void {
    const message = "The caller's deadline has passed.";
    this.#answers.fail({ grpcStatus: grpcStatuses.deadlineExceeded, message });
    this.stop();
  }

  /** Resolves when more may be sent, or nothing can be sent any more. */
  async #drained(): Promise<void> {
    if (this.signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
  }
}
