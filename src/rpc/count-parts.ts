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
  return countIn(reader, partsOf(schema));
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

function partsOf({ fields }: DescMessage): PartOf {
  return (number) => {
    const field = fields.find((one) => one.number === number);
    const message = field && messageOf(field);
    if (field === undefined || message === undefined) return undefined;
    const part = partsOf(message);
    // An entry of a map is a key and a value.
    return field.fieldKind === "map" ? (inner) => (inner === 2 ? part : undefined) : part;
  };
}

/** The type of the messages that a field holds, also as a list or a map. */
export function messageOf(field: DescField): DescMessage | undefined {
  if (field.fieldKind === "message") return field.message;
  if (field.fieldKind === "list" && field.listKind === "message") return field.message;
  if (field.fieldKind === "map" && field.mapKind === "message") return field.message;
  return undefined;
}
