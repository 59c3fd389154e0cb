import { fromBinary } from "@bufbuild/protobuf";
import type {
  BodyModes,
  ExchangeMessage,
  ExchangePart,
  ExchangeReply,
  PlainValue,
} from "../core/exchange-messages.js";
import type { HeaderMap } from "../gen/envoy/config/core/v3/base_pb.js";
import {
  type ProcessingRequest,
  ProcessingRequestSchema,
  type ProtocolConfiguration,
} from "../gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { ExchangeReplyEncoder } from "./ext-proc-encoder.js";
import { decodeHeaderValue, joinHeader } from "./ext-proc-headers.js";
import { WantedNames } from "./ext-proc-names.js";
import { decodePlainExchange, type WantedParts } from "./ext-proc-plain-decoder.js";
import { bodyModeOf } from "./ext-proc-shapes.js";
import { asBuffer } from "./rls-scanner.js";

/** What is wanted of messages; the rest is only seen to be well-formed. */
export interface WantedExchange {
  /** Names of headers and trailers of requests, in lower case as Envoy sends them. */
  readonly requestHeaderNames: ReadonlySet<string>;
  /** Names of headers and trailers of responses, in lower case. */
  readonly responseHeaderNames: ReadonlySet<string>;
  /** Names of attributes, for example `source.address`. */
  readonly attributeNames: ReadonlySet<string>;
}

/** The key under which Envoy sends attributes. Source: FilterName of the ext_proc filter. */
const attributesKey = "envoy.filters.http.ext_proc";

/**
 * The messages of Envoy's ExternalProcessor, to and from what an exchange is made of. For what
 * Envoy sends every day neither way makes a message object.
 */
export class ExtProcCodec {
  readonly #wanted: WantedExchange;
  readonly #encoder = new ExchangeReplyEncoder();
  #compiled: CompiledNames;

  /** @param wanted its sets may be exchanged for others at any time, and are never edited */
  constructor(wanted: WantedExchange) {
    this.#wanted = wanted;
    this.#compiled = new CompiledNames(wanted);
  }

  /**
   * What Envoy's bytes say. Never throws for bytes: those that are no ProcessingRequest give
   * `malformed`. They may be reused once it returns.
   */
  decode(bytes: Uint8Array): ExchangeMessage {
    if (!this.#compiled.isOf(this.#wanted)) this.#compiled = new CompiledNames(this.#wanted);
    const plain = decodePlainExchange(asBuffer(bytes), this.#compiled);
    return plain ?? decodeExchange(bytes, this.#wanted);
  }

  /** The bytes of a reply; nobody writes to them any more. */
  encode(reply: ExchangeReply): Uint8Array {
    return this.#encoder.encode(reply);
  }
}

/** The names of one moment, made ready for bytes. */
class CompiledNames implements WantedParts {
  readonly #source: WantedExchange;
  readonly requestHeaders: WantedNames;
  readonly responseHeaders: WantedNames;
  readonly attributes: WantedNames;
  readonly attributesKey = new WantedNames(new Set([attributesKey]));

  constructor({ requestHeaderNames, responseHeaderNames, attributeNames }: WantedExchange) {
    this.#source = { requestHeaderNames, responseHeaderNames, attributeNames };
    this.requestHeaders = new WantedNames(requestHeaderNames);
    this.responseHeaders = new WantedNames(responseHeaderNames);
    this.attributes = new WantedNames(attributeNames);
  }

  isOf(wanted: WantedExchange): boolean {
    return (
      wanted.requestHeaderNames === this.#source.requestHeaderNames &&
      wanted.responseHeaderNames === this.#source.responseHeaderNames &&
      wanted.attributeNames === this.#source.attributeNames
    );
  }
}

/** The long way: what Envoy does not send every day, and what is not well-formed. */
function decodeExchange(bytes: Uint8Array, wanted: WantedExchange): ExchangeMessage {
  const request = decodeProcessingRequest(bytes);
  if (request === undefined) return { kind: "malformed" };
  const part = toPart(request.request, wanted);
  if (part === undefined) return { kind: "unknown" };
  return {
    kind: "part",
    ...part,
    attributes: toAttributes(request, wanted.attributeNames),
    isObserved: request.observabilityMode,
    bodyModes: toBodyModes(request.protocolConfig),
  };
}

/** All that Envoy sent; undefined for what is no ProcessingRequest. */
function decodeProcessingRequest(bytes: Uint8Array): ProcessingRequest | undefined {
  try {
    return fromBinary(ProcessingRequestSchema, bytes);
  } catch {
    // The decoder's words may quote the bytes, so they are dropped.
    return undefined;
  }
}

interface DecodedPart {
  readonly part: ExchangePart;
  readonly headers: ReadonlyMap<string, string>;
  readonly isEndOfStream: boolean;
}

function toPart(
  request: ProcessingRequest["request"],
  { requestHeaderNames, responseHeaderNames }: WantedExchange,
): DecodedPart | undefined {
  switch (request.case) {
    case "requestHeaders":
    case "responseHeaders": {
      const { headers, endOfStream } = request.value;
      const names = request.case === "requestHeaders" ? requestHeaderNames : responseHeaderNames;
      return {
        part: request.case,
        headers: toHeaders(headers, names),
        isEndOfStream: endOfStream,
      };
    }
    case "requestTrailers":
    case "responseTrailers": {
      const { trailers } = request.value;
      const names = request.case === "requestTrailers" ? requestHeaderNames : responseHeaderNames;
      return { part: request.case, headers: toHeaders(trailers, names), isEndOfStream: true };
    }
    case "requestBody":
    case "responseBody": {
      const { endOfStream, endOfStreamWithoutMessage } = request.value;
      return {
        part: request.case,
        headers: new Map(),
        isEndOfStream: endOfStream || endOfStreamWithoutMessage,
      };
    }
    default:
      return undefined;
  }
}

function toHeaders(
  map: HeaderMap | undefined,
  names: ReadonlySet<string>,
): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (const { key, value, rawValue } of map?.headers ?? []) {
    if (!names.has(key)) continue;
    const bytes = asBuffer(rawValue);
    joinHeader(headers, key, bytes.length > 0 ? decodeHeaderValue(bytes, 0, bytes.length) : value);
  }
  return headers;
}

function toAttributes(
  request: ProcessingRequest,
  names: ReadonlySet<string>,
): ReadonlyMap<string, PlainValue> {
  const attributes = new Map<string, PlainValue>();
  for (const [name, value] of Object.entries(request.attributes[attributesKey] ?? {})) {
    if (!names.has(name)) continue;
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
      attributes.set(name, value);
    }
  }
  return attributes;
}

function toBodyModes(protocol: ProtocolConfiguration | undefined): BodyModes | undefined {
  if (protocol === undefined) return undefined;
  return {
    request: bodyModeOf(protocol.requestBodyMode),
    response: bodyModeOf(protocol.responseBodyMode),
  };
}
