import { isScalar, Scalar } from "yaml";
import type { WaitBound } from "../core/admission-settings.js";
import { formatDuration, parseDurationMs } from "./duration.js";
import type { Field, NodeReader } from "./node-reader.js";
import { quoteText } from "./problem.js";
import type { TextRule } from "./text-rules.js";

/** Which numbers are right. */
export interface NumberBounds {
  readonly min: number;
  readonly max: number;
  /** `min` itself is too little. */
  readonly isMinExcluded?: true;
}

/** A share: 0 to 1. */
export const ratioBounds: NumberBounds = { min: 0, max: 1 };

/** A share that is not none: above 0 to 1. */
export const positiveRatioBounds: NumberBounds = { min: 0, max: 1, isMinExcluded: true };

/** Which durations are right, in milliseconds. */
export interface DurationBounds {
  readonly minMs: number;
  readonly maxMs: number;
}

/** Reads a number with or without a fraction, in plain digits; undefined where it is wrong. */
export function readNumber(
  reader: NodeReader,
  field: Field,
  bounds: NumberBounds,
): number | undefined {
  const { min, max, isMinExcluded } = bounds;
  const expected = `a number, ${isMinExcluded ? "above " : ""}${min} to ${max}`;
  const place = reader.required(field, expected);
  const node = reader.contentOf(field);
  if (place === undefined || node === undefined) return undefined;
  const written = isScalar(node) ? String(node.source ?? "") : "";
  const isPlain = isScalar(node) && node.type === Scalar.PLAIN && plainNumber.test(written);
  if (!isPlain) {
    const message = isScalar(node) ? `${quoteText(written)} is not a number` : "this is no number";
    const suggestion = meantNumber(written);
    return reader.reportContent(place, { id: "HG202", message, expected, suggestion });
  }
  const value = Number(written);
  if (value >= min && value <= max && (value > min || !isMinExcluded)) return value + 0;
  const message = `${quoteText(written)} is out of range`;
  return reader.reportContent(place, { id: "HG141", message, expected });
}

const plainNumber = /^-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,15})?$/;

/** What `75%`, `.75` or a number in quotes was probably meant to be. */
function meantNumber(written: string): string | undefined {
  const percent = /^([0-9]{1,3})%$/.exec(written)?.[1];
  if (percent !== undefined) return String(Number(percent) / 100);
  const text = written.startsWith(".") ? `0${written}` : written;
  return plainNumber.test(text) ? text : undefined;
}

/** A duration's text; what is in it is read later. */
const durationRule: TextRule = {
  charsMax: 64,
  forbidden: /\p{Cc}/u,
  expected: "a duration like 5ms, 2s, 1m30s or 1h",
};

/** Reads a duration in milliseconds; undefined where it is wrong. */
export function readDuration(
  reader: NodeReader,
  field: Field,
  bounds: DurationBounds,
): number | undefined {
  const text = reader.readText(field, durationRule);
  if (text === undefined) return undefined;
  const durationMs = parseDurationMs(text);
  if (durationMs === undefined) return refuseDuration(reader, field, text);
  return checkDuration(reader, field, { text, durationMs, bounds });
}

/** Reads a duration, or a multiple of the service time such as `100x`. */
export function readWaitBound(
  reader: NodeReader,
  field: Field,
  bounds: DurationBounds,
): WaitBound | undefined {
  const text = reader.readText(field, durationRule);
  if (text === undefined) return undefined;
  if (text.endsWith("x")) {
    const multiple = readMultiple(reader, field);
    return multiple === undefined ? undefined : { kind: "serviceTimes", multiple };
  }
  const durationMs = parseDurationMs(text);
  if (durationMs === undefined) return refuseDuration(reader, field, text);
  const ms = checkDuration(reader, field, { text, durationMs, bounds });
  return ms === undefined ? undefined : { kind: "duration", ms };
}

/** Largest multiple: what is beyond bounds nothing. */
export const multipleMax = 1_000_000;

const expectedMultiple = `a multiple like 3x or 1.5x, above 0 to ${multipleMax}x`;

/** Reads a multiple such as `3x` or `1.5x`. */
export function readMultiple(reader: NodeReader, field: Field): number | undefined {
  const text = reader.readText(field, { ...durationRule, expected: expectedMultiple });
  if (text === undefined) return undefined;
  const number = text.endsWith("x") ? text.slice(0, -1) : "";
  const multiple = plainNumber.test(number) ? Number(number) : 0;
  if (multiple > 0 && multiple <= multipleMax) return multiple;
  return reader.reportContent(field.value ?? field.key, {
    id: "HG208",
    message: `${quoteText(text)} is not a multiple`,
    expected: expectedMultiple,
    suggestion: plainNumber.test(text) && Number(text) > 0 ? `${text}x` : undefined,
  });
}

function refuseDuration(reader: NodeReader, field: Field, text: string): undefined {
  return reader.reportContent(field.value ?? field.key, {
    id: "HG201",
    message: `${quoteText(text)} is not a duration`,
    expected: durationRule.expected,
    suggestion: meantDuration(text),
  });
}

/** What `2`, `1.5s` or `2 s` was probably meant to be. */
function meantDuration(text: string): string | undefined {
  const [, number, unit = "s"] = /^([0-9]{1,6}(?:\.[0-9]{1,3})?) ?(ms|s|m|h|d)?$/.exec(text) ?? [];
  const unitMs = number === undefined ? undefined : parseDurationMs(`1${unit}`);
  if (number === undefined || unitMs === undefined) return undefined;
  const durationMs = Number(number) * unitMs;
  return Number.isInteger(durationMs) ? formatDuration(durationMs) : undefined;
}

function checkDuration(
  reader: NodeReader,
  field: Field,
  read: { readonly text: string; readonly durationMs: number; readonly bounds: DurationBounds },
): number | undefined {
  const { text, durationMs, bounds } = read;
  if (durationMs >= bounds.minMs && durationMs <= bounds.maxMs) return durationMs;
  return reader.reportContent(field.value ?? field.key, {
    id: "HG141",
    message: `${quoteText(text)} is out of range`,
    expected: `a duration, ${formatDuration(bounds.minMs)} to ${formatDuration(bounds.maxMs)}`,
  });
}
