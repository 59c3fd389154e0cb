import {
  type DescField,
  type DescMessage,
  type JsonValue,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import type { PlainValue } from "../../generate/base/plain-tree.js";

/**
 * A message as JSON has it: names in camelCase, what is empty too, times as RFC 3339, durations as
 * `1.500s`. Unlike in protobuf's own JSON, 64-bit integers are numbers, as people who filter with
 * jq expect: ours are counts and versions far below 2^53.
 *
 * Source: Protocol Buffers, "ProtoJSON Format".
 */
export function plainMessage(schema: DescMessage, message: Message): PlainValue {
  return plainValue(toJson(schema, message, { alwaysEmitImplicit: true }), { message: schema });
}

/** What a value is of; a field of a map is of neither. */
type ValueKind = Partial<Pick<DescField, "message" | "scalar">>;

function plainValue(json: JsonValue, kind: ValueKind): PlainValue {
  if (Array.isArray(json)) return json.map((item) => plainValue(item, kind));
  if (json instanceof Object) {
    const fields = new Map((kind.message?.fields ?? []).map((field) => [field.jsonName, field]));
    return Object.fromEntries(
      Object.entries(json).map(([name, value]) => [
        name,
        plainValue(value, fields.get(name) ?? {}),
      ]),
    );
  }
  if (typeof json === "string" && isLong(kind.scalar)) return Number(json);
  // Messages of ours hold no null.
  return json ?? "";
}

function isLong(scalar: ScalarType | undefined): boolean {
  return scalar === ScalarType.UINT64 || scalar === ScalarType.INT64;
}
