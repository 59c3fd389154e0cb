import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { ServiceError } from "../../core/base/errors.js";

/** What a client of reflection asks. Source: ServerReflectionRequest, `message_request`. */
export type ReflectionQuestion =
  | { readonly kind: "file"; readonly name: string }
  | { readonly kind: "symbol"; readonly name: string }
  | { readonly kind: "extension"; readonly typeName: string; readonly number: number }
  | { readonly kind: "extensionNumbers"; readonly typeName: string }
  | { readonly kind: "services" }
  | { readonly kind: "none" };

/** A question, and what its answer repeats of it. */
export interface ReflectionRequest {
  readonly question: ReflectionQuestion;
  readonly host: string;
  /** The whole message. */
  readonly bytes: Uint8Array;
}

/** What it is answered. Source: ServerReflectionResponse, `message_response`. */
export type ReflectionAnswer =
  /** Serialized FileDescriptorProtos. */
  | { readonly kind: "files"; readonly files: readonly Uint8Array[] }
  | {
      readonly kind: "extensionNumbers";
      readonly typeName: string;
      readonly numbers: readonly number[];
    }
  | { readonly kind: "services"; readonly names: readonly string[] }
  | { readonly kind: "error"; readonly grpcStatus: number; readonly message: string };

/** The longest question in bytes: its answer repeats it. Names are far shorter. */
export const reflectionRequestBytesMax = 4_096;

/**
 * Decodes a question. Of several the last one counts, as in any oneof. By hand, because the image
 * of Envoy's API does not hold these messages; v1 and v1alpha are the same on the wire.
 *
 * Source: grpc/reflection/v1/reflection.proto.
 *
 * @throws ServiceError REQUEST_INVALID for bytes that are no such message
 */
export function decodeReflectionRequest(bytes: Uint8Array): ReflectionRequest {
  let host = "";
  let question: ReflectionQuestion = { kind: "none" };
  readFields(bytes, (reader, field) => {
    if (field === requestFields.host) host = reader.string();
    else if (field === requestFields.file) question = { kind: "file", name: reader.string() };
    else if (field === requestFields.symbol) question = { kind: "symbol", name: reader.string() };
    else if (field === requestFields.extension) question = extensionOf(reader.bytes());
    else if (field === requestFields.extensionNumbers) {
      question = { kind: "extensionNumbers", typeName: reader.string() };
    } else if (field === requestFields.services) {
      // What stands in it filters nothing: clients send "*", "" or anything.
      reader.bytes();
      question = { kind: "services" };
    } else return false;
    return true;
  });
  return { question, host, bytes };
}

/** Encodes an answer. Source: as above. */
export function encodeReflectionAnswer(
  { host, bytes }: ReflectionRequest,
  answer: ReflectionAnswer,
): Uint8Array {
  const writer = new BinaryWriter();
  if (host !== "") writer.tag(answerFields.host, lengthDelimited).string(host);
  writer.tag(answerFields.request, lengthDelimited).bytes(bytes);
  const body = encodeBody(answer);
  return writer.tag(answerFields[answer.kind], lengthDelimited).bytes(body).finish();
}

const requestFields = {
  host: 1,
  file: 3,
  symbol: 4,
  extension: 5,
  extensionNumbers: 6,
  services: 7,
} as const;

const answerFields = {
  host: 1,
  request: 2,
  files: 4,
  extensionNumbers: 5,
  services: 6,
  error: 7,
} as const;

const lengthDelimited = WireType.LengthDelimited;

function extensionOf(bytes: Uint8Array): ReflectionQuestion {
  let typeName = "";
  let number = 0;
  readFields(bytes, (reader, field, wireType) => {
    if (field === 1 && wireType === lengthDelimited) typeName = reader.string();
    else if (field === 2 && wireType === WireType.Varint) number = reader.int32();
    else return false;
    return true;
  });
  return { kind: "extension", typeName, number };
}

/** Reads one field's value, or answers false to have it skipped. */
type FieldReader = (reader: BinaryReader, field: number, wireType: WireType) => boolean;

function readFields(bytes: Uint8Array, read: FieldReader): void {
  const reader = new BinaryReader(bytes);
  try {
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (!read(reader, field, wireType)) reader.skip(wireType, field);
    }
  } catch {
    throw new ServiceError("REQUEST_INVALID", "The message is not a ServerReflectionRequest.");
  }
}

function encodeBody(answer: ReflectionAnswer): Uint8Array {
  const writer = new BinaryWriter();
  switch (answer.kind) {
    case "files":
      for (const file of answer.files) writer.tag(1, lengthDelimited).bytes(file);
      return writer.finish();
    case "extensionNumbers": {
      writer.tag(1, lengthDelimited).string(answer.typeName);
      const packed = new BinaryWriter();
      for (const number of answer.numbers) packed.int32(number);
      return writer.tag(2, lengthDelimited).bytes(packed.finish()).finish();
    }
    case "services":
      for (const name of answer.names) {
        const service = new BinaryWriter().tag(1, lengthDelimited).string(name);
        writer.tag(1, lengthDelimited).bytes(service.finish());
      }
      return writer.finish();
    case "error":
      writer.tag(1, WireType.Varint).int32(answer.grpcStatus);
      return writer.tag(2, lengthDelimited).string(answer.message).finish();
  }
}
