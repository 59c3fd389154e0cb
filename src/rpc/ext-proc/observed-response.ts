import type { PartMessage } from "../../core/admission/exchange.js";
import { metadataNamespace, type ScalarValue } from "../../core/admission/exchange-messages.js";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import type { ExchangeCounts } from "../../decide/admission/exchange-counts.js";
import type { UsageObserver, UsageObservers } from "../../decide/budget/budget-call.js";
import type { BidiAnswers, BidiContext, BidiReader } from "../../wire/grpc/service.js";
import { GrpcFailure } from "../grpc/status.js";
import { ExtProcCodec } from "./ext-proc-codec.js";

/** Dependencies of streams that observe responses. */
export interface UsageObserving {
  readonly observers: UsageObservers;
  readonly codec: ExtProcCodec;
  readonly counts: ExchangeCounts;
}

/** Creates a codec that reads what observers need of messages. */
export function createUsageCodec({
  responseHeaderNames,
  fieldNames,
}: UsageObservers): ExtProcCodec {
  return new ExtProcCodec({
    requestHeaderNames: new Set(),
    responseHeaderNames,
    attributeNames: new Set(),
    metadataPaths: new Map([[metadataNamespace, fieldNames]]),
  });
}

/** Opens a stream that observes a response. Without observers, it ends at once, without error. */
export function observeUsage(
  observing: UsageObserving | undefined,
  call: BidiContext,
  answers: BidiAnswers,
): BidiReader {
  if (observing !== undefined) return new ObservedResponse(observing, call.peer.identity, answers);
  answers.end();
  return deaf;
}

/**
 * One observed response. Envoy waits for no reply and gets none. Each message is processed when
 * `onMessage` returns, and its bytes are not kept: Envoy holds the response back from its caller
 * while a processor does not read.
 *
 * A stream without a call, and one whose response is complete, ends at once: Envoy continues the
 * response without it. If the response has no end, the caller or the upstream has gone. Envoy
 * reports that only by the end of the stream, `deferred_close_timeout` later.
 */
class ObservedResponse implements BidiReader {
  readonly #observing: UsageObserving;
  readonly #peer: string;
  readonly #answers: BidiAnswers;
  #observer: UsageObserver | undefined;
  #isOver = false;

  constructor(observing: UsageObserving, peer: string, answers: BidiAnswers) {
    this.#observing = observing;
    this.#peer = peer;
    this.#answers = answers;
    observing.counts.opened();
  }

  onMessage(bytes: Uint8Array): void {
    if (this.#isOver) return;
    try {
      this.#read(bytes);
    } catch (thrown) {
      this.#fail(thrown);
    }
    if (!this.#isOver) this.#answers.next();
  }

  onEnd(): void {
    this.#end(false);
  }

  onCancel(): void {
    this.#end(false);
  }

  onDrain(): void {}

  onTooLarge(): void {
    if (this.#isOver) return;
    this.#observing.counts.countFault("tooLarge");
    this.#end(false);
  }

  #read(bytes: Uint8Array): void {
    const { codec, counts } = this.#observing;
    const message = codec.decode(bytes);
    if (message.kind !== "part") {
      counts.countFault(message.kind);
      this.#fail(unreadable);
    } else if (!message.isObserved) {
      counts.countFault("notObserved");
      this.#fail(notObserved);
    } else {
      counts.countPart(message.part);
      this.#onPart(message);
    }
  }

  #onPart(message: PartMessage): void {
    const { part, isEndOfStream } = message;
    if (part.startsWith("request")) return;
    const { observers } = this.#observing;
    const fields = message.metadata?.get(metadataNamespace) ?? noFields;
    this.#observer ??= observers.open(fields, this.#peer);
    if (this.#observer === undefined) {
      this.#end(false);
      return;
    }
    if (part === "responseHeaders") this.#observer.responded(message.headers);
    else if (part === "responseTrailers") this.#observer.trailers(message.headers);
    else if (message.body !== undefined) this.#observer.body(message.body);
    if (isEndOfStream) this.#end(true);
  }

  #end(isComplete: boolean): void {
    if (this.#isOver) return;
    this.#close(isComplete);
    this.#answers.end();
  }

  #fail(thrown: unknown): void {
    this.#close(false);
    this.#answers.fail(thrown);
  }

  #close(isComplete: boolean): void {
    this.#isOver = true;
    this.#observing.counts.closed();
    const observer = this.#observer;
    this.#observer = undefined;
    observer?.end(isComplete);
  }
}

const noFields: ReadonlyMap<string, ScalarValue> = new Map();

const deaf: BidiReader = {
  onMessage() {},
  onEnd() {},
  onCancel() {},
  onDrain() {},
};

const unreadable = new GrpcFailure(
  grpcStatuses.invalidArgument,
  "The message is not a ProcessingRequest with a known part.",
);

const notObserved = new GrpcFailure(
  grpcStatuses.failedPrecondition,
  "Responses are only observed; set observability_mode.",
);
