import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import type { FieldReader } from "./field-reader.js";

/** Returns the part in a field of a message. Undefined if the field is a number or a text. */
type PartOf = (field: number) => PartOf | undefined;

/**
 * Returns how many messages a general decoder would create for a message: its parts and theirs,
 * including those of maps. The reader rejects messages with too many fields.
 *
 * @throws Error for bytes that are not a message, and what the reader throws
 */
export function countParts(reader: FieldReader, schema: DescMessage): number {
  return countIn(reader, partsOf(schema, new Map()));
}

function countIn(reader: FieldReader, partOf: PartOf): number {
  let count = 0;
  while (reader.next()) {
    const part = partOf(Math.floor(reader.tag / 8));
    if (part === undefined || (reader.tag & 7) !== WireType.LengthDelimited) {
      reader.skip();
      continue;
    }
    const outerEnd = reader.enter();
    count += 1 + countIn(reader, part);
    reader.leave(outerEnd);
  }
  return count;
}

/** Finds the parts of a type of message, only once: a field may occur a million times. */
function partsOf(schema: DescMessage, made: Map<DescMessage, PartOf>): PartOf {
  const known = made.get(schema);
  if (known !== undefined) return known;
  const parts: PartOf[] = [];
  const partOf: PartOf = (number) => parts[number];
  // Set before its fields are visited, because a type may contain itself.
  made.set(schema, partOf);
  for (const field of schema.fields) {
    const message = messageOf(field);
    if (message === undefined) continue;
    const part = partsOf(message, made);
    // An entry of a map is a key and a value.
    const ofEntry: PartOf = (number) => (number === 2 ? part : undefined);
    parts[field.number] = field.fieldKind === "map" ? ofEntry : part;
  }
  return partOf;
}

/** Returns the type of the messages in a field, a list or a map. Undefined if there are none. */
export function messageOf(field: DescField): DescMessage | undefined {
  if (field.fieldKind === "message") return field.message;
  if (field.fieldKind === "list" && field.listKind === "message") return field.message;
  if (field.fieldKind === "map" && field.mapKind === "message") return field.message;
  return undefined;
}
