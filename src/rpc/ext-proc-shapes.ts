import type { BodyMode, ExchangePart } from "../core/exchange-messages.js";
import type { MessageShape } from "./ext-proc-scanner.js";

/**
 * The fields of a ProcessingRequest and of all that it holds, for walking over what nobody wants to
 * know. A test holds them equal to the descriptors. Source: external_processor.proto, base.proto,
 * struct.proto, any.proto.
 */
export const requestShape: MessageShape = (fieldNumber) => {
  if (fieldNumber === 2 || fieldNumber === 3) return headersShape;
  if (fieldNumber === 4 || fieldNumber === 5) return bodyShape;
  if (fieldNumber === 6 || fieldNumber === 7) return trailersShape;
  if (fieldNumber === 8) return metadataShape;
  if (fieldNumber === 9) return structEntryShape;
  if (fieldNumber === 10) return "varint";
  if (fieldNumber === 11) return protocolShape;
  if (fieldNumber === 12) return flowControlShape;
  return fieldNumber === 13 ? windowUpdateShape : undefined;
};

/** HttpHeaders. */
export const headersShape: MessageShape = (fieldNumber) => {
  if (fieldNumber === 1) return headerMapShape;
  if (fieldNumber === 2) return structEntryShape;
  return fieldNumber === 3 ? "varint" : undefined;
};

/** HttpTrailers. */
export const trailersShape: MessageShape = (fieldNumber) =>
  fieldNumber === 1 ? headerMapShape : undefined;

/** HttpBody. */
export const bodyShape: MessageShape = (fieldNumber) => {
  if (fieldNumber === 1) return "bytes";
  return fieldNumber <= 5 ? "varint" : undefined;
};

/** HeaderMap. */
export const headerMapShape: MessageShape = (fieldNumber) =>
  fieldNumber === 1 ? headerShape : undefined;

/** HeaderValue. */
export const headerShape: MessageShape = (fieldNumber) => {
  if (fieldNumber === 1 || fieldNumber === 2) return "text";
  return fieldNumber === 3 ? "bytes" : undefined;
};

/** ProtocolConfiguration. */
export const protocolShape: MessageShape = (fieldNumber) =>
  fieldNumber <= 3 ? "varint" : undefined;

/** Struct. */
export const structShape: MessageShape = (fieldNumber) =>
  fieldNumber === 1 ? valueEntryShape : undefined;

/** Value. */
export const valueShape: MessageShape = (fieldNumber) => {
  if (fieldNumber === 1 || fieldNumber === 4) return "varint";
  if (fieldNumber === 2) return "double";
  if (fieldNumber === 3) return "text";
  if (fieldNumber === 5) return structShape;
  return fieldNumber === 6 ? listShape : undefined;
};

const listShape: MessageShape = (fieldNumber) => (fieldNumber === 1 ? valueShape : undefined);

const metadataShape: MessageShape = (fieldNumber) => {
  if (fieldNumber === 1) return structEntryShape;
  return fieldNumber === 2 ? anyEntryShape : undefined;
};

const anyShape: MessageShape = (fieldNumber) => {
  if (fieldNumber === 1) return "text";
  return fieldNumber === 2 ? "bytes" : undefined;
};

const flowControlShape: MessageShape = (fieldNumber) => (fieldNumber <= 4 ? "varint" : undefined);

const windowUpdateShape: MessageShape = (fieldNumber) => (fieldNumber <= 2 ? "varint" : undefined);

const valueEntryShape = mapEntryShape(valueShape);
const structEntryShape = mapEntryShape(structShape);
const anyEntryShape = mapEntryShape(anyShape);

/** An entry of a map from texts to messages. */
function mapEntryShape(value: MessageShape): MessageShape {
  return (fieldNumber) => {
    if (fieldNumber === 1) return "text";
    return fieldNumber === 2 ? value : undefined;
  };
}

/** The parts of an exchange by their field number in a ProcessingRequest. */
export const partsByField: readonly (ExchangePart | undefined)[] = [
  undefined,
  undefined,
  "requestHeaders",
  "responseHeaders",
  "requestBody",
  "responseBody",
  "requestTrailers",
  "responseTrailers",
];

/** The mode of a number in ProcessingMode.BodySendMode; "unknown" for those of a later Envoy. */
export function bodyModeOf(modeNumber: number): BodyMode {
  return bodyModesByNumber[modeNumber] ?? "unknown";
}

const bodyModesByNumber: readonly BodyMode[] = [
  "none",
  "streamed",
  "buffered",
  "bufferedPartial",
  "fullDuplexStreamed",
  "grpc",
];
