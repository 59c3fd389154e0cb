import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { messageOf } from "../../src/rpc/codec/count-parts.js";
import { rawField, rawVarint } from "./raw-field.js";

/** A message that costs as much as it can, of so many bytes. */
export interface WorstMessage {
  readonly what: string;
  readonly bytes: Buffer;
}

/** A field on the way to a part; the value of a map's entry is one, too. */
type Step = Pick<DescField, "name" | "number">;

/** Messages in each other that are filled. */
const depthMax = 4;

/**
 * The worst messages of a type: each field and part of it as often as fits, empty or filled with
 * numbers of ten bytes; fields that it does not have; parts in each other as deep as they go.
 *
 * @param byteCount how large each is, about
 */
export function* worstMessages(schema: DescMessage, byteCount: number): Generator<WorstMessage> {
  for (const [i, field] of [Buffer.of(0xf8, 0x7f, 1), Buffer.of(0xfa, 0x7f, 0)].entries()) {
    yield { what: `fields that it does not have, ${i}`, bytes: within([], field, byteCount) };
  }
  yield* worstParts(schema, byteCount, []);
}

/** A message of a type with each of its fields once, and those of its parts. */
export function wholeMessage(schema: DescMessage, depth = 0): Buffer {
  const parts = schema.fields.map((field) => {
    const tag = (wireType: number) => rawVarint(field.number * 8 + wireType);
    if (wireTypeOf(field) === 0) return Buffer.concat([tag(0), Buffer.of(1)]);
    if (wireTypeOf(field) === 1) return Buffer.concat([tag(1), Buffer.alloc(8, 0x3f)]);
    const message = messageOf(field);
    const key = rawField(0x0a, Buffer.from("a"));
    if (message === undefined) {
      return rawField(field.number * 8 + 2, field.fieldKind === "map" ? key : Buffer.from("a"));
    }
    if (depth >= depthMax) return Buffer.alloc(0);
    const inner = wholeMessage(message, depth + 1);
    if (field.fieldKind !== "map") return rawField(field.number * 8 + 2, inner);
    const entry = Buffer.concat([key, rawField(0x12, inner)]);
    return rawField(field.number * 8 + 2, entry);
  });
  return Buffer.concat(parts);
}

function* worstParts(
  schema: DescMessage,
  byteCount: number,
  path: readonly Step[],
): Generator<WorstMessage> {
  for (const field of schema.fields) {
    const at: readonly Step[] = [...path, field];
    const what = at.map(({ name }) => name).join(".");
    const tag = (wireType: number) => rawVarint(field.number * 8 + wireType);
    const many = (words: string, ...unit: readonly Buffer[]): WorstMessage => {
      return { what: `${what}${words}`, bytes: within(path, Buffer.concat(unit), byteCount) };
    };
    if (wireTypeOf(field) === 0) {
      yield many(", short", tag(0), Buffer.of(1));
      yield many(", long", tag(0), Buffer.from([...Array<number>(9).fill(0xff), 1]));
      continue;
    }
    if (wireTypeOf(field) === 1) {
      yield many("", tag(1), Buffer.alloc(8));
      continue;
    }
    yield many(", empty", tag(2), Buffer.of(0));
    yield many(", short", tag(2), Buffer.of(1, 0x61));
    yield { what: `${what}, one`, bytes: within(at, Buffer.of(0xff), byteCount) };
    const isMap = field.fieldKind === "map";
    if (isMap) yield many(", keys", keyedEntries(field.number, byteCount));
    const message = messageOf(field);
    if (message === undefined || at.length >= depthMax) continue;
    const others = at.filter(({ number }) => number === field.number);
    if (others.length > 2) continue;
    yield* worstParts(message, byteCount, isMap ? [...at, { name: "value", number: 2 }] : at);
  }
}

/** Entries of a map, each with a key of its own and a value that is empty. */
function keyedEntries(number: number, byteCount: number): Buffer {
  const tag = rawVarint(number * 8 + 2).toString("latin1");
  let bytes = "";
  for (let i = 0; bytes.length < byteCount; i += 1) {
    const key = i.toString(36);
    const [length, keyLength] = [key.length + 4, key.length].map((one) => String.fromCharCode(one));
    bytes += `${tag}${length}\n${keyLength}${key}\u0012\0`;
  }
  return Buffer.from(bytes, "latin1");
}

function wireTypeOf(field: DescField): 0 | 1 | 2 {
  if (field.fieldKind === "enum") return 0;
  if (field.fieldKind !== "scalar") return 2;
  // Source: descriptor.proto, Type: 1 double, 6 fixed64, 9 string, 12 bytes, 16 sfixed64.
  if ([1, 6, 16].includes(field.scalar)) return 1;
  return [9, 12].includes(field.scalar) ? 2 : 0;
}

/** One field in the other, from outside in, around a unit as often as it fits, at least once. */
function within(path: readonly Step[], unit: Buffer, byteCount: number): Buffer {
  const length = Math.max(1, Math.floor(byteCount / unit.length)) * unit.length;
  let head = Buffer.alloc(0);
  for (const { number } of path.toReversed()) {
    head = Buffer.concat([rawVarint(number * 8 + 2), rawVarint(head.length + length), head]);
  }
  const whole = Buffer.allocUnsafeSlow(head.length + length).fill(unit, head.length);
  head.copy(whole);
  return whole;
}
