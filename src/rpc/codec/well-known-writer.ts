import type { ScalarValue } from "../../core/admission/exchange-messages.js";
import type { BackwardWriter } from "./backward-writer.js";

/** Maximum number of bytes of a UTF-16 unit in UTF-8. */
const unitBytesMax = 3;

/** Maximum bytes of tags and lengths of a header or struct field, including a number. */
const fieldOverheadMax = 40;

/** Field numbers with their wire types. Source: google.protobuf.Struct, Value and Duration. */
const tags = {
  fields: 0x0a,
  mapKey: 0x0a,
  mapValue: 0x12,
  numberValue: 0x11,
  stringValue: 0x1a,
  boolValue: 0x20,
  structValue: 0x2a,
  seconds: 0x08,
  nanos: 0x10,
} as const;

/** Returns the maximum size of two texts in a message, with tags and lengths, in bytes. */
export function encodedTextsMax(one: string, other = ""): number {
  return (one.length + other.length) * unitBytesMax + fieldOverheadMax;
}

/** Returns the maximum size of a field of a struct, in bytes. */
export function structFieldLengthMax(name: string, value: ScalarValue): number {
  return encodedTextsMax(name, typeof value === "string" ? value : "");
}

/** Writes fields of a `google.protobuf.Struct`, in reverse order. */
export function writeStructFields(
  writer: BackwardWriter,
  fields: Iterable<readonly [string, ScalarValue]>,
): void {
  for (const [name, value] of fields) {
    const end = writer.at;
    writeValue(writer, value);
    endStructField(writer, name, end);
  }
}

/** Completes a struct's field whose value is the struct written since the writer was at `end`. */
export function endStructOfStruct(writer: BackwardWriter, name: string, end: number): void {
  writer.message(tags.structValue, end);
  endStructField(writer, name, end);
}

/** Writes a `google.protobuf.Duration`. @param wholeMs at least 0 */
export function writeDuration(writer: BackwardWriter, wholeMs: number): void {
  writer.number(tags.nanos, (wholeMs % 1_000) * 1_000_000);
  writer.number(tags.seconds, Math.floor(wholeMs / 1_000));
}

function endStructField(writer: BackwardWriter, name: string, end: number): void {
  writer.message(tags.mapValue, end);
  writer.text(tags.mapKey, name);
  writer.message(tags.fields, end);
}

/** Writes the one field of a Value. As part of a oneof, it is written even if it is zero. */
function writeValue(writer: BackwardWriter, value: ScalarValue): void {
  if (typeof value === "string") {
    writer.text(tags.stringValue, value);
  } else if (typeof value === "number") {
    writer.double(value);
    writer.byte(tags.numberValue);
  } else {
    writer.byte(value ? 1 : 0);
    writer.byte(tags.boolValue);
  }
}
