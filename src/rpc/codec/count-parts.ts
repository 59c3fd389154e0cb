import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import type { FieldReader } from "./field-reader.js";

/** The part that a field of a message is; undefined for one that holds a number or a text. */
type PartOf = (field: number) => PartOf | undefined;

/**
 * How many messages a general decoder would make of a message: its parts and theirs, those of maps
 * among them. The reader refuses more fields than it takes.
 *
 * @throws Error for bytes that are no message, and what the reader throws
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

/** The parts of a message, made of each message once: a field may come a million times. */
function partsOf(schema: DescMessage, made: Map<DescMessage, PartOf>): PartOf {
  const known = made.get(schema);
  if (known !== undefined) return known;
  const parts: PartOf[] = [];
  const partOf: PartOf = (number) => parts[number];
  // Before those of its fields: a message may hold itself.
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

/** The type of the messages that a field holds, also as a list or a map. */
export function messageOf(field: DescField): DescMessage | undefined {
  if (field.fieldKind === "message") return field.message;
  if (field.fieldKind === "list" && field.listKind === "message") return field.message;
  if (field.fieldKind === "map" && field.mapKind === "message") return field.message;
  return undefined;
}
