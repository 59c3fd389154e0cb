import {
  type BufferedBody,
  type ExchangeEffect,
  type ExchangeEvent,
  type ExchangeFault,
  type ExchangeState,
  mayAwaitBody,
  newExchange,
  type PartMessage,
  stepExchange,
} from "../../core/admission/exchange.js";
import {
  type ExchangeMessage,
  type ExchangeReply,
  type Refusal,
  roleHeader,
} from "../../core/admission/exchange-messages.js";
import { reasonHeader } from "../../core/admission/refusal.js";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type {
  AdmissionCall,
  AdmissionDecider,
  AdmissionRequest,
  AdmissionTicket,
  AdmissionVerdict,
  ResponseFacts,
} from "../../decide/admission/admission-call.js";
import type { ExchangeCounts } from "../../decide/admission/exchange-counts.js";
import {
  type BidiAnswers,
  type BidiContext,
  type BidiReader,
  messageBytesMax,
  type ServiceHandlers,
} from "../../wire/grpc/service.js";
import { GrpcFailure } from "../grpc/status.js";
import { bytesBesidesBody } from "./body-message.js";
import { observeUsage, type UsageObserving } from "./observed-response.js";

/** The service's full name. Source: envoy/service/ext_proc/v3/external_processor.proto. */
const externalProcessorName = "envoy.service.ext_proc.v3.ExternalProcessor";

/** Stream metadata that names the service, as the route's `grpc_initial_metadata` sets it. */
const serviceNameField = "x-headgate-service";

/** The role of streams that only observe responses. */
const usageRole = "usage";

/**
 * Maximum size of a message, in bytes: the largest body that Envoy is configured to buffer for
 * Headgate, and the rest of the message.
 */
const processBytesMax = 8_650_752;

/** Decodes messages and encodes replies: an `ExtProcCodec`. */
interface ExchangeCodec {
  /** Never throws. Bytes that are not a message result in `malformed`. */
  decode(bytes: Uint8Array): ExchangeMessage;
  encode(reply: ExchangeReply): Uint8Array;
}

/** Dependencies and settings of the service. */
export interface ExternalProcessorParts {
  readonly admission: AdmissionDecider;
  readonly codec: ExchangeCodec;
  readonly counts: ExchangeCounts;
  /** Maximum size of a message without its body, in bytes. Default `messageBytesMax`. */
  readonly requestBytesMax?: number;
  /** Reads observed responses. Absent: they are not read. */
  readonly usage?: UsageObserving;
}

/**
 * Creates Envoy's ExternalProcessor. Each HTTP request has a stream that asks for admission, and a
 * second one that only observes its response if usage is read from it. A stream that breaks the
 * protocol ends with a status that says what to change. A request that is too large is refused:
 * callers can send one, and Envoy could let it pass after an error. Envoy's resets are no failures.
 */
export function createExternalProcessorService(parts: ExternalProcessorParts): ServiceHandlers {
  const open = (call: BidiContext, answers: BidiAnswers): BidiReader =>
    call.metadata(roleHeader) === usageRole
      ? observeUsage(parts.usage, call, answers)
      : new Exchange(parts, call, answers);
  const method = { kind: "bidi", name: "Process", bytesMax: processBytesMax, open } as const;
  return { name: externalProcessorName, methods: [method] };
}

/** One exchange. Passes events to the protocol's state machine and applies the effects. */
class Exchange implements BidiReader, AdmissionCall {
  readonly #parts: ExternalProcessorParts;
  readonly #serviceName: string | undefined;
  readonly #peer: string;
  readonly #answers: BidiAnswers;
  #state: ExchangeState = newExchange;
  #ticket: AdmissionTicket | undefined;
  /** Whether the caller reads more slowly than it sends. Its next message then waits. */
  #isStalled = false;

  constructor(parts: ExternalProcessorParts, call: BidiContext, answers: BidiAnswers) {
    this.#parts = parts;
    this.#serviceName = call.metadata(serviceNameField);
    this.#peer = call.peer.identity;
    this.#answers = answers;
    parts.counts.opened();
  }

  onMessage(bytes: Uint8Array): void {
    const { codec, counts, requestBytesMax = messageBytesMax } = this.#parts;
    if (bytes.length > requestBytesMax && bytesBesidesBody(bytes) > requestBytesMax) {
      this.onTooLarge();
      return;
    }
    const message = codec.decode(bytes);
    if (message.kind === "part") counts.countPart(message.part);
    this.#step({ kind: "message", message, awaitsBody: this.#awaitsBody(message) });
    // Now, not after the verdict: what comes next may report that the caller has left the queue.
    if (!this.#isStalled) this.#answers.next();
  }

  onEnd(): void {
    this.#step({ kind: "callerEnded" });
  }

  onCancel(): void {
    this.#step({ kind: "callerEnded" });
  }

  onTooLarge(): void {
    if (this.#state.kind === "over") return;
    this.#parts.counts.countFault("tooLarge");
    const isBody = this.#state.kind === "awaitingBody";
    this.#step({ kind: "tooLarge", refusal: isBody ? largeBodyRefusal : tooLargeRefusal });
  }

  onDrain(): void {
    if (!this.#isStalled) return;
    this.#isStalled = false;
    this.#answers.next();
  }

  decided(verdict: AdmissionVerdict): void {
    this.#step(verdict);
  }

  #step(event: ExchangeEvent): void {
    const { state, replies, effects } = stepExchange(this.#state, event);
    this.#state = state;
    for (const reply of replies) {
      if (!this.#answers.send(this.#parts.codec.encode(reply))) this.#isStalled = true;
    }
    for (const effect of effects) this.#do(effect);
  }

  #do(effect: ExchangeEffect): void {
    if (effect.kind === "begin") this.#begin(effect.message, effect.body);
    else if (effect.kind === "responded") this.#ticket?.responded(responseOf(effect.message));
    else if (effect.kind === "end") this.#ticket?.end(effect.end);
    else if (effect.kind === "answeredBefore") this.#parts.counts.countAnsweredBefore();
    else if (effect.kind === "endStream") this.#close();
    else this.#fail(effect.fault);
  }

  #awaitsBody(message: ExchangeMessage): boolean {
    if (message.kind !== "part" || this.#state.kind !== "new" || !mayAwaitBody(message)) {
      return false;
    }
    try {
      return this.#parts.admission.readsBody(this.#requestOf(message));
    } catch (thrown) {
      this.#failFor(thrown);
      return false;
    }
  }

  #begin(message: PartMessage, body: BufferedBody | undefined): void {
    const { admission } = this.#parts;
    const request = this.#requestOf(message);
    try {
      const facts = body === undefined ? undefined : admission.readBody(request, body);
      const answer = admission.begin(facts === undefined ? request : { ...request, facts }, this);
      if (answer.kind !== "refused") this.#ticket = answer.ticket;
      if (answer.kind !== "asking") this.#step(answer);
    } catch (thrown) {
      this.#failFor(thrown);
    }
  }

  #requestOf({ headers, attributes, isObserved }: PartMessage): AdmissionRequest {
    return { serviceName: this.#serviceName, peer: this.#peer, headers, attributes, isObserved };
  }

  /** Fails the stream because of a bug in the decider. */
  #failFor(thrown: unknown): void {
    this.#state = { kind: "over" };
    this.#parts.counts.closed();
    this.#answers.fail(thrown);
  }

  #close(): void {
    this.#parts.counts.closed();
    this.#answers.end();
  }

  #fail(fault: ExchangeFault): void {
    this.#parts.counts.closed();
    this.#parts.counts.countFault(fault);
    const { grpcStatus, message } = faultRows[fault];
    this.#answers.fail(new GrpcFailure(grpcStatus, message));
  }
}

/**
 * Returns the refusal of a request that is too large. After an error, Envoy could let it pass. The
 * type of the request is unknown, so the body is text, which Envoy uses as the message for gRPC.
 */
function refusalInWords(status: number, reason: string, details: string): Refusal {
  return {
    status,
    grpcStatus: grpcStatuses.resourceExhausted,
    headers: [
      { name: reasonHeader, value: reason },
      { name: "content-type", value: "text/plain" },
    ],
    body: reason,
    details,
  };
}

/** Source: RFC 6585, section 5 (431). */
const tooLargeRefusal = refusalInWords(
  httpStatuses.requestHeaderFieldsTooLarge,
  "The request's header fields exceed the maximum size.",
  "headgate_request_too_large",
);

/** Source: RFC 9110, section 15.5.14 (413). */
const largeBodyRefusal = refusalInWords(
  httpStatuses.contentTooLarge,
  "The request's body exceeds the maximum size.",
  "headgate_body_too_large",
);

/** The status that Envoy receives for each fault. Envoy logs the message, for people to read. */
const faultRows: Readonly<
  Record<ExchangeFault, { readonly grpcStatus: number; readonly message: string }>
> = {
  malformed: {
    grpcStatus: grpcStatuses.invalidArgument,
    message: "The message is not a ProcessingRequest.",
  },
  unknown: {
    grpcStatus: grpcStatuses.invalidArgument,
    message: "The message contains no known part of a request or response.",
  },
  outOfOrder: {
    grpcStatus: grpcStatuses.invalidArgument,
    message:
      "A part arrived twice or too early; set the body modes of processing_mode to NONE, " +
      "BUFFERED or BUFFERED_PARTIAL.",
  },
  noRequestHeaders: {
    grpcStatus: grpcStatuses.failedPrecondition,
    message: "The request headers are missing; set request_header_mode of processing_mode to SEND.",
  },
  bodiesStreamed: {
    grpcStatus: grpcStatuses.failedPrecondition,
    message:
      "Headgate does not send bodies back; set the body modes of processing_mode to NONE, " +
      "BUFFERED or BUFFERED_PARTIAL.",
  },
};

/** HTTP statuses have three digits, gRPC's at most two. Source: RFC 9110 section 15. */
const wholeStatus = /^[0-9]{1,3}$/;

function responseOf({ headers, metadata }: PartMessage): ResponseFacts {
  return {
    status: statusIn(headers.get(":status")),
    grpcStatus: statusIn(headers.get("grpc-status")),
    isOverloaded: headers.has("x-envoy-overloaded"),
    loadMetrics: headers.get("endpoint-load-metrics"),
    headers,
    metadata,
  };
}

function statusIn(text: string | undefined): number | undefined {
  return text !== undefined && wholeStatus.test(text) ? Number(text) : undefined;
}
