import { type DescEnum, ScalarType } from "@bufbuild/protobuf";
import type { PlainValue } from "../base/plain-tree.js";

/** A scalar as it was read, or what would be correct. */
export type ScalarReading =
  | { readonly kind: "value"; readonly value: string | number | boolean }
  | { readonly kind: "wrong"; readonly expected: string };

/** Reads a ProtoJSON scalar. Integers may be strings, as 64-bit integers are. */
export function readScalar(type: ScalarType, value: PlainValue): ScalarReading {
  switch (type) {
    case ScalarType.BOOL:
      return typeof value === "boolean" ? { kind: "value", value } : wrong("true or false");
    case ScalarType.STRING:
      // UTF-8 cannot encode unpaired surrogates.
      return typeof value === "string" && value.isWellFormed()
        ? { kind: "value", value }
        : wrong("a text, in quotes");
    case ScalarType.BYTES:
      return typeof value === "string" && base64.test(value)
        ? { kind: "value", value }
        : wrong("bytes in base64");
    case ScalarType.DOUBLE:
      return readFraction(value);
    case ScalarType.FLOAT:
      return readFloat(value);
    default:
      return readInteger(value, integerRanges[type]);
  }
}

/** Both alphabets. A group of four cannot consist of a single character. Source: ProtoJSON. */
const base64 = /^(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2,3})?={0,2}$/;

/** Numbers that JSON cannot express are strings. Source: ProtoJSON. */
function readFraction(value: PlainValue): ScalarReading {
  if (value === "NaN" || value === "Infinity" || value === "-Infinity") {
    return { kind: "value", value: Number(value) };
  }
  const isText = typeof value === "string" && /^-?\d\S*$/.test(value);
  const number = isText ? Number(value) : value;
  if (typeof number !== "number" || !Number.isFinite(number)) return wrong("a number");
  return { kind: "value", value: number };
}

/** Reads a number that is within the range of 32 bits, however imprecisely. */
function readFloat(value: PlainValue): ScalarReading {
  const read = readFraction(value);
  const isTooLarge =
    read.kind === "value" &&
    Number.isFinite(read.value) &&
    !Number.isFinite(Math.fround(Number(read.value)));
  return isTooLarge ? wrong("a number of 32 bits") : read;
}

/** Minimum and maximum of an integer type. */
interface IntegerRange {
  readonly min: bigint;
  readonly max: bigint;
}

const signed32: IntegerRange = { min: -(2n ** 31n), max: 2n ** 31n - 1n };
const signed64: IntegerRange = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
const unsigned32: IntegerRange = { min: 0n, max: 2n ** 32n - 1n };
const unsigned64: IntegerRange = { min: 0n, max: 2n ** 64n - 1n };

const integerRanges: Readonly<
  Record<
    Exclude<
      ScalarType,
      | typeof ScalarType.BOOL
      | typeof ScalarType.STRING
      | typeof ScalarType.BYTES
      | typeof ScalarType.DOUBLE
      | typeof ScalarType.FLOAT
    >,
    IntegerRange
  >
> = {
  [ScalarType.INT32]: signed32,
  [ScalarType.SINT32]: signed32,
  [ScalarType.SFIXED32]: signed32,
  [ScalarType.INT64]: signed64,
  [ScalarType.SINT64]: signed64,
  [ScalarType.SFIXED64]: signed64,
  [ScalarType.UINT32]: unsigned32,
  [ScalarType.FIXED32]: unsigned32,
  [ScalarType.UINT64]: unsigned64,
  [ScalarType.FIXED64]: unsigned64,
};

function readInteger(value: PlainValue, { min, max }: IntegerRange): ScalarReading {
  const expected = `a whole number from ${min} to ${max}`;
  const isNumber =
    typeof value === "number" ? Number.isInteger(value) : /^-?\d+$/.test(String(value));
  if (!isNumber || typeof value === "boolean" || typeof value === "object") return wrong(expected);
  const integer = BigInt(value);
  if (integer < min || integer > max) return wrong(expected);
  return { kind: "value", value: Number(integer) };
}

/** Reads an enum by its name, or by the number of one of its values. Returns the name. */
export function readEnum(desc: DescEnum, value: PlainValue): ScalarReading {
  const found = desc.values.find(({ name, number }) => name === value || number === value);
  if (found !== undefined) return { kind: "value", value: found.name };
  return wrong(`one of ${desc.values.map(({ name }) => name).join(", ")}`);
}

/** Maximum duration, in seconds. Source: google.protobuf.Duration. */
const durationSecondsMax = 315_576_000_000;

/** Parses a duration such as `0.25s` to seconds. Returns undefined if it is not one. */
export function readJsonDuration(value: PlainValue): number | undefined {
  if (typeof value !== "string" || !/^-?\d+(?:\.\d{1,9})?s$/.test(value)) return undefined;
  const seconds = Number(value.slice(0, -1));
  return Math.abs(seconds) <= durationSecondsMax ? seconds : undefined;
}

function wrong(expected: string): ScalarReading {
  return { kind: "wrong", expected };
}
