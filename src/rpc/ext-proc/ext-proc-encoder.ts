import type {
  ContinueReply,
  ExchangePart,
  ExchangeReply,
  Refusal,
  ReplyMetadata,
} from "../../core/admission/exchange-messages.js";
import type { HeaderField } from "../../core/base/header-field.js";
import { BackwardWriter } from "../codec/backward-writer.js";
import {
  encodedTextsMax,
  endStructOfStruct,
  structFieldLengthMax,
  writeDuration,
  writeStructFields,
} from "../codec/well-known-writer.js";

/**
 * Encodes ProcessingResponse by hand. Most replies only continue the exchange and always have the
 * same bytes. The others are written from their end to their beginning, so that the length of a
 * nested message is known when it is written. Property tests compare the result with protobuf-es.
 *
 * Texts are written in UTF-8, and header values as `raw_value`, as Envoy sends them: only one of
 * `raw_value` and `value` may be set.
 *
 * Source: protobuf.dev/programming-guides/encoding; external_processor.proto for the fields.
 */
export class ExchangeReplyEncoder {
  readonly #writer = new BackwardWriter();

  /** Returns the bytes of a reply. They are not written again. */
  encode(reply: ExchangeReply): Uint8Array {
    if (reply.kind === "continue") return this.#continue(reply);
    const writer = this.#writer;
    if (reply.kind === "wait") {
      writer.begin(waitLengthMax);
      writeTimeout(writer, reply.timeoutMs);
    } else {
      writer.begin(refusalLengthMax(reply.refusal));
      writeRefusal(writer, reply.refusal);
    }
    return writer.finish();
  }

  #continue(reply: ContinueReply): Uint8Array {
    const { part, setHeaders, removeHeaders, metadata, responseHeaders, clearsRoute } = reply;
    const isPlain = setHeaders.length === 0 && removeHeaders.length === 0 && clearsRoute !== true;
    if (isPlain && metadata === undefined && responseHeaders === undefined) {
      return plainReplies[part];
    }
    const writer = this.#writer;
    writer.begin(
      baseLengthMax + mutationLengthMax(setHeaders, removeHeaders) + metadataLengthMax(metadata),
    );
    if (responseHeaders !== undefined) {
      writer.bytes(responseHeaders === "send" ? sendsResponseHeaders : skipsResponseHeaders);
    }
    if (metadata !== undefined) writeMetadata(writer, metadata);
    writePart(writer, reply);
    return writer.finish();
  }
}

/** Maximum size of the tags, lengths and numbers around all fields, in bytes. */
const baseLengthMax = 80;

/** Maximum size of a duration's two numbers, in bytes. */
const waitLengthMax = 32;

/** Field numbers with their wire types. Source: the .proto files. */
const tags = {
  requestHeaders: 0x0a,
  responseHeaders: 0x12,
  requestBody: 0x1a,
  responseBody: 0x22,
  requestTrailers: 0x2a,
  responseTrailers: 0x32,
  immediateResponse: 0x3a,
  dynamicMetadata: 0x42,
  modeOverride: 0x4a,
  overrideMessageTimeout: 0x52,
  common: 0x0a,
  commonHeaderMutation: 0x12,
  clearRouteCache: 0x28,
  trailersHeaderMutation: 0x0a,
  setHeaders: 0x0a,
  removeHeaders: 0x12,
  header: 0x0a,
  append: 0x12,
  appendAction: 0x18,
  headerKey: 0x0a,
  headerRawValue: 0x1a,
  responseHeaderMode: 0x10,
  responseTrailerMode: 0x30,
  status: 0x0a,
  immediateHeaders: 0x12,
  body: 0x1a,
  grpcStatus: 0x22,
  details: 0x2a,
  statusCode: 0x08,
  grpcStatusCode: 0x08,
} as const;

/** Source: HeaderValueOption.HeaderAppendAction. */
const overwriteIfExistsOrAdd = 2;

/** A BoolValue. Envoy 1.40 lets processors append only by `append`, which is deprecated. */
const isTrue = Uint8Array.of(tags.append, 2, 0x08, 1);

/** Source: ProcessingMode.HeaderSendMode. */
const headerSendModes = { send: 1, skip: 2 } as const;

/**
 * Replies with the status CONTINUE, which is the default of all their fields. Those to bodies are
 * for modes in which Envoy keeps the body itself (see `BodyMode`).
 */
const plainReplies: Readonly<Record<ExchangePart, Uint8Array>> = {
  requestHeaders: Uint8Array.of(tags.requestHeaders, 0),
  requestBody: Uint8Array.of(tags.requestBody, 0),
  requestTrailers: Uint8Array.of(tags.requestTrailers, 0),
  responseHeaders: Uint8Array.of(tags.responseHeaders, 0),
  responseBody: Uint8Array.of(tags.responseBody, 0),
  responseTrailers: Uint8Array.of(tags.responseTrailers, 0),
};

/**
 * Both request trailers, because their mode keeps the stream open until the response is complete.
 * The other modes become the default: headers as Envoy has them, no bodies.
 */
const sendsResponseHeaders = modeOverride(headerSendModes.send);
const skipsResponseHeaders = modeOverride(headerSendModes.skip);

function modeOverride(mode: number): Uint8Array {
  const { responseHeaderMode, responseTrailerMode } = tags;
  const { send } = headerSendModes;
  return Uint8Array.of(tags.modeOverride, 4, responseHeaderMode, mode, responseTrailerMode, send);
}

function writePart(writer: BackwardWriter, reply: ContinueReply): void {
  const { part, setHeaders, removeHeaders, clearsRoute } = reply;
  const hasMutation = setHeaders.length > 0 || removeHeaders.length > 0;
  const isTrailers = part === "requestTrailers" || part === "responseTrailers";
  const end = writer.at;
  if (clearsRoute === true && !isTrailers) writer.number(tags.clearRouteCache, 1);
  if (hasMutation) {
    const mutationEnd = writer.at;
    writeMutation(writer, setHeaders, removeHeaders);
    writer.message(
      isTrailers ? tags.trailersHeaderMutation : tags.commonHeaderMutation,
      mutationEnd,
    );
  }
  if (!isTrailers && writer.at !== end) writer.message(tags.common, end);
  writer.message(tags[part], end);
}

/** Writes the fields of a HeaderMutation. */
function writeMutation(
  writer: BackwardWriter,
  setHeaders: readonly HeaderField[],
  removeHeaders: readonly string[],
): void {
  for (let i = removeHeaders.length - 1; i >= 0; i -= 1) {
    writer.text(tags.removeHeaders, removeHeaders[i] ?? "");
  }
  for (let i = setHeaders.length - 1; i >= 0; i -= 1) {
    const header = setHeaders[i];
    if (header !== undefined) writeHeader(writer, header);
  }
}

/** Writes a HeaderValueOption. */
function writeHeader(writer: BackwardWriter, { name, value, isAppended }: HeaderField): void {
  const end = writer.at;
  if (isAppended === true) writer.bytes(isTrue);
  else writer.number(tags.appendAction, overwriteIfExistsOrAdd);
  const headerEnd = writer.at;
  if (value !== "") writer.text(tags.headerRawValue, value);
  if (name !== "") writer.text(tags.headerKey, name);
  writer.message(tags.header, headerEnd);
  writer.message(tags.setHeaders, end);
}

/** Writes a Struct with one field, the namespace, whose value is a Struct with the fields. */
function writeMetadata(writer: BackwardWriter, { namespace, fields }: ReplyMetadata): void {
  const end = writer.at;
  writeStructFields(writer, fields);
  endStructOfStruct(writer, namespace, end);
  writer.message(tags.dynamicMetadata, end);
}

/**
 * Writes an ImmediateResponse. Its fields are in the order of their numbers, as every encoder
 * writes them.
 */
function writeRefusal(writer: BackwardWriter, refusal: Refusal): void {
  const { status, grpcStatus, headers, body, details, metadata } = refusal;
  if (metadata !== undefined) writeMetadata(writer, metadata);
  const end = writer.at;
  if (details !== "") writer.text(tags.details, details);
  if (grpcStatus !== undefined) {
    const grpcStatusEnd = writer.at;
    writer.number(tags.grpcStatusCode, grpcStatus);
    writer.message(tags.grpcStatus, grpcStatusEnd);
  }
  if (body !== "") writer.text(tags.body, body);
  if (headers.length > 0) {
    const headersEnd = writer.at;
    writeMutation(writer, headers, []);
    writer.message(tags.immediateHeaders, headersEnd);
  }
  const statusEnd = writer.at;
  writer.number(tags.statusCode, status);
  writer.message(tags.status, statusEnd);
  writer.message(tags.immediateResponse, end);
}

/** Writes a Duration in whole milliseconds, rounded up: Envoy ignores less than one. */
function writeTimeout(writer: BackwardWriter, timeoutMs: number): void {
  const end = writer.at;
  writeDuration(writer, Math.ceil(timeoutMs));
  writer.message(tags.overrideMessageTimeout, end);
}

function mutationLengthMax(
  setHeaders: readonly HeaderField[],
  removeHeaders: readonly string[],
): number {
  let length = 0;
  for (const header of setHeaders) length += encodedTextsMax(header.name, header.value);
  for (const name of removeHeaders) length += encodedTextsMax(name);
  return length;
}

function metadataLengthMax(metadata: ReplyMetadata | undefined): number {
  if (metadata === undefined) return 0;
  let length = encodedTextsMax(metadata.namespace);
  for (const [name, value] of metadata.fields) {
    length += structFieldLengthMax(name, value);
  }
  return length;
}

function refusalLengthMax({ headers, body, details, metadata }: Refusal): number {
  const ownMax = baseLengthMax + mutationLengthMax(headers, []) + encodedTextsMax(body, details);
  return ownMax + metadataLengthMax(metadata);
}
