import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { JsonObject, JsonValue } from "../../core/base/json.js";

const { Varint, Bit64, LengthDelimited } = WireType;

/**
 * Encodes a `google.protobuf.Struct`. By hand, like all responses of the decision and control
 * ports: the library would parse the descriptors of Envoy's API at each start.
 *
 * Source: google/protobuf/struct.proto.
 */
export function encodeStruct(fields: JsonObject): Uint8Array {
  const writer = new BinaryWriter();
  for (const [name, value] of Object.entries(fields)) {
    writer.tag(1, LengthDelimited).fork();
    writer.tag(1, LengthDelimited).string(name);
    writer.tag(2, LengthDelimited).bytes(encodeValue(value));
    writer.join();
  }
  return writer.finish();
}

function encodeValue(value: JsonValue): Uint8Array {
  const writer = new BinaryWriter();
  if (value === null) writer.tag(1, Varint).int32(0);
  else if (typeof value === "number") writer.tag(2, Bit64).double(value);
  else if (typeof value === "string") writer.tag(3, LengthDelimited).string(value);
  else if (typeof value === "boolean") writer.tag(4, Varint).bool(value);
  else if (isList(value)) writer.tag(6, LengthDelimited).bytes(encodeList(value));
  else writer.tag(5, LengthDelimited).bytes(encodeStruct(value));
  return writer.finish();
}

function encodeList(values: readonly JsonValue[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const value of values) writer.tag(1, LengthDelimited).bytes(encodeValue(value));
  return writer.finish();
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
