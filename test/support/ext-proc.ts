import type { ClientHttp2Session } from "node:http2";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import type { BufferedBody } from "../../src/core/admission/exchange.js";
import type { Refusal } from "../../src/core/admission/exchange-messages.js";
import type { CallFacts } from "../../src/core/budgets/usage.js";
import type {
  AdmissionAnswer,
  AdmissionCall,
  AdmissionDecider,
  AdmissionGrant,
  AdmissionRequest,
  AdmissionTicket,
  AdmissionVerdict,
  ResponseFacts,
} from "../../src/decide/admission/admission-call.js";
import { ProcessingMode_BodySendMode } from "../../src/gen/envoy/extensions/filters/http/ext_proc/v3/processing_mode_pb.js";
import {
  ProcessingRequestSchema,
  type ProcessingResponse,
  ProcessingResponseSchema,
  ProtocolConfigurationSchema,
} from "../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { identity, type RunningTransport } from "./transports.js";
import { waitFor } from "./wait.js";

/** Where the service is. */
export const processPath = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";

/** One exchange as a client sees it. */
export interface ExchangeClient {
  /** Sends one message: of Envoy's fields, or any bytes. */
  send(message: MessageInitShape<typeof ProcessingRequestSchema> | Buffer): void;
  /** Half-closes. */
  end(): void;
  /** Resets the stream. */
  cancel(): void;
  readonly answers: readonly ProcessingResponse[];
  /** The gRPC status once the stream is over; undefined before. */
  readonly status: { readonly code: number; readonly details: string } | undefined;
  /** Resolves when so many answers have come. */
  answered(count: number): Promise<readonly ProcessingResponse[]>;
  /** Resolves when the stream is over. */
  over(): Promise<{ readonly code: number; readonly details: string }>;
}

/** Opens a stream, as Envoy does for each request. */
export function openExchange(
  { client }: Pick<RunningTransport, "client">,
  fields: Readonly<Record<string, string>> = {},
): ExchangeClient {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(fields)) metadata.set(name, value);
  const stream: ClientDuplexStream<Buffer, Buffer> = client.makeBidiStreamRequest(
    processPath,
    identity,
    identity,
    metadata,
    {},
  );
  const answers: ProcessingResponse[] = [];
  let status: { readonly code: number; readonly details: string } | undefined;
  stream.on("data", (bytes: Buffer) => answers.push(fromBinary(ProcessingResponseSchema, bytes)));
  stream.on("status", ({ code, details }) => {
    status = { code, details };
  });
  stream.on("error", () => {});
  return {
    send: (message) => {
      stream.write(
        Buffer.isBuffer(message)
          ? message
          : Buffer.from(
              toBinary(ProcessingRequestSchema, create(ProcessingRequestSchema, message)),
            ),
      );
    },
    end: () => stream.end(),
    cancel: () => stream.cancel(),
    answers,
    get status() {
      return status;
    },
    answered: async (count) => {
      await waitFor(`${count} answers`, () => answers.length >= count);
      return answers;
    },
    over: () => waitFor("the stream is over", () => status),
  };
}

/** Begins an exchange over node:http2, which is cheap enough for thousands, and leaves it open. */
export function openRawExchange(session: ClientHttp2Session): void {
  const bytes = toBinary(
    ProcessingRequestSchema,
    create(ProcessingRequestSchema, requestHeaders()),
  );
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  const stream = session.request({
    ":method": "POST",
    ":path": processPath,
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.on("error", () => {});
  stream.write(Buffer.concat([head, bytes]));
}

/** A message with request headers, as Envoy sends them. */
export function requestHeaders(
  fields: Readonly<Record<string, string>> = { ":path": "/", ":method": "GET" },
): MessageInitShape<typeof ProcessingRequestSchema> {
  return { request: { case: "requestHeaders", value: httpHeaders(fields) } };
}

/** A first message with request headers that Envoy holds back until their body is answered. */
export function bufferedRequest(): MessageInitShape<typeof ProcessingRequestSchema> {
  const value = { ...httpHeaders({ ":path": "/", ":method": "POST" }), endOfStream: false };
  return {
    request: { case: "requestHeaders", value },
    protocolConfig: create(ProtocolConfigurationSchema, {
      requestBodyMode: ProcessingMode_BodySendMode.BUFFERED,
    }),
  };
}

/** A message with response headers. */
export function responseHeaders(
  fields: Readonly<Record<string, string>> = { ":status": "200" },
): MessageInitShape<typeof ProcessingRequestSchema> {
  return { request: { case: "responseHeaders", value: httpHeaders(fields) } };
}

function httpHeaders(fields: Readonly<Record<string, string>>) {
  const headers = Object.entries(fields).map(([key, value]) => ({
    key,
    rawValue: Buffer.from(value),
  }));
  return { headers: { headers }, endOfStream: true };
}

/** A request at the door, as who decides sees it. */
export interface AskedRequest {
  readonly request: AdmissionRequest;
  readonly call: Answering;
  readonly responses: readonly ResponseFacts[];
  readonly ends: readonly string[];
}

/** Lets a test say what becomes of each request: at once, or by the call that it is given. */
export class DoorKeeper implements AdmissionDecider {
  readonly requestHeaderNames = new Set([":path", ":method", "x-name"]);
  readonly responseHeaderNames = new Set([":status", "grpc-status", "endpoint-load-metrics"]);
  readonly attributeNames = new Set(["request.path", "source.address"]);
  readonly metadataPaths: AdmissionDecider["metadataPaths"] = new Map([
    ["io.usage", new Set(["tokens", "details.cached"])],
  ]);
  readonly asked: AskedRequest[] = [];
  /** Whether it decides requests with their bodies, and those that it was shown. */
  readsBodies = false;
  readonly bodies: { readonly text: string; readonly isWhole: boolean }[] = [];
  readonly #decide: (request: AdmissionRequest, call: Answering) => void;

  /** @param decide told of each request; may answer then, later or never */
  constructor(decide: (request: AdmissionRequest, call: Answering) => void) {
    this.#decide = decide;
  }

  readsBody(): boolean {
    return this.readsBodies;
  }

  /** Takes the body's text for the model. */
  readBody(_request: AdmissionRequest, { bytes, isWhole }: BufferedBody): CallFacts {
    const text = Buffer.from(bytes).toString();
    this.bodies.push({ text, isWhole });
    return { model: text.slice(0, 128), requestBytes: bytes.length };
  }

  begin(request: AdmissionRequest, call: AdmissionCall): AdmissionAnswer {
    const responses: ResponseFacts[] = [];
    const ends: string[] = [];
    const ticket: AdmissionTicket = {
      responded: (facts) => responses.push(facts),
      end: (end) => ends.push(end),
    };
    const answering = new Answering(call, ticket);
    this.asked.push({ request, call: answering, responses, ends });
    this.#decide(request, answering);
    return answering.begun();
  }
}

/** Says what becomes of a request: by what `begin` returns, and by a call after that. */
export class Answering {
  readonly #call: AdmissionCall;
  readonly #ticket: AdmissionTicket;
  #verdict: AdmissionVerdict | undefined;
  #isBegun = false;

  constructor(call: AdmissionCall, ticket: AdmissionTicket) {
    this.#call = call;
    this.#ticket = ticket;
  }

  admitted(terms: AdmissionGrant): void {
    this.#tell({ kind: "admitted", terms, ticket: this.#ticket });
  }

  refused(refusal: Refusal): void {
    this.#tell({ kind: "refused", refusal });
  }

  waiting(timeoutMs: number): void {
    this.#tell({ kind: "waiting", timeoutMs, ticket: this.#ticket });
  }

  begun(): AdmissionAnswer {
    this.#isBegun = true;
    return this.#verdict ?? { kind: "asking", ticket: this.#ticket };
  }

  #tell(verdict: AdmissionVerdict): void {
    if (this.#isBegun) this.#call.decided(verdict);
    else this.#verdict = verdict;
  }
}

/** Terms that change nothing. */
export const plainTerms: AdmissionGrant = {
  priority: "normal",
  setHeaders: [],
  removeHeaders: [],
  metadata: undefined,
  responseHeaders: undefined,
  isFollowed: true,
};
