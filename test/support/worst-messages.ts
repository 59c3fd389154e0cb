import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { rawField, rawVarint } from "./raw-field.js";

/** A message that costs as much as it can, of so many bytes. */
export interface WorstMessage {
  readonly what: string;
  readonly bytes: Buffer;
}

/** Messages in each other that are filled. */
const depthMax = 4;

/**
 * The worst messages of a type: each field and part of it as often as fits, empty or filled with
 * numbers of ten bytes; fields that it does not have; parts in each other as deep as they go.
 *
 * @param byteCount how large each is, about
 */
export function worstMessages(schema: DescMessage, byteCount: number): readonly WorstMessage[] {
  const unknown = [Buffer.of(0xf8, 0x7f, 1), Buffer.of(0xfa, 0x7f, 0)].map((field, i) => ({
    what: `fields that it does not have, ${i}`,
    bytes: filled(field, byteCount),
  }));
  return [...unknown, ...worstParts(schema, byteCount, [])];
}

function worstParts(
  schema: DescMessage,
  byteCount: number,
  path: readonly DescField[],
): readonly WorstMessage[] {
  return schema.fields.flatMap((field) => {
    const at = [...path, field];
    const what = at.map(({ name }) => name).join(".");
    const wrap = (unit: Buffer): Buffer => within(path, filled(unit, byteCount));
    const tag = (wireType: number) => rawVarint(field.number * 8 + wireType);
    if (wireTypeOf(field) === 0) {
      const long = Buffer.concat([tag(0), Buffer.from([...Array<number>(9).fill(0xff), 1])]);
      return [
        { what: `${what}, short`, bytes: wrap(Buffer.concat([tag(0), Buffer.of(1)])) },
        { what: `${what}, long`, bytes: wrap(long) },
      ];
    }
    if (wireTypeOf(field) === 1) {
      return [{ what, bytes: wrap(Buffer.concat([tag(1), Buffer.alloc(8)])) }];
    }
    const texts = [
      { what: `${what}, empty`, bytes: wrap(Buffer.concat([tag(2), Buffer.of(0)])) },
      { what: `${what}, short`, bytes: wrap(Buffer.concat([tag(2), Buffer.of(1, 0x61)])) },
      { what: `${what}, one`, bytes: within(at, Buffer.alloc(byteCount, 0xff)) },
    ];
    const message = messageOf(field);
    if (message === undefined || at.length >= depthMax) return texts;
    const others = at.filter(({ number }) => number === field.number);
    return others.length > 2 ? texts : [...texts, ...worstParts(message, byteCount, at)];
  });
}

function messageOf(field: DescField): DescMessage | undefined {
  if (field.fieldKind === "message") return field.message;
  if (field.fieldKind === "list" && field.listKind === "message") return field.message;
  return undefined;
}

function wireTypeOf(field: DescField): 0 | 1 | 2 {
  if (field.fieldKind === "enum") return 0;
  if (field.fieldKind !== "scalar") return 2;
  // Source: descriptor.proto, Type: 1 double, 6 fixed64, 9 string, 12 bytes, 16 sfixed64.
  if ([1, 6, 16].includes(field.scalar)) return 1;
  return [9, 12].includes(field.scalar) ? 2 : 0;
}

/** One field in the other, from the outside in, around these bytes. */
function within(path: readonly DescField[], bytes: Buffer): Buffer {
  return path.reduceRight((inner, { number }) => rawField(number * 8 + 2, inner), bytes);
}

function filled(unit: Buffer, byteCount: number): Buffer {
  const count = Math.max(1, Math.floor(byteCount / unit.length));
  return Buffer.alloc(count * unit.length, unit);
}
