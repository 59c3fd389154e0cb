import { isScalar, Scalar } from "yaml";
import type { WaitBound } from "../../core/admission/estimated-wait.js";
import { quoteText } from "../problems/problem.js";
import { formatDuration, parseDurationMs } from "./duration.js";
import type { Field, NodeReader } from "./node-reader.js";
import type { TextRule } from "./text-rules.js";

/** Range of valid numbers. */
export interface NumberBounds {
  readonly min: number;
  readonly max: number;
  /** `min` itself is too small. */
  readonly isMinExcluded?: true;
  /** `20%` then means 20, not 0.2. */
  readonly isPercent?: true;
}

/** A ratio: 0 to 1. */
export const ratioBounds: NumberBounds = { min: 0, max: 1 };

/** A ratio that is not zero: above 0 to 1. */
export const positiveRatioBounds: NumberBounds = { min: 0, max: 1, isMinExcluded: true };

/** Bounds of a number of permits, and so of a concurrency limit. */
export const permitBounds = { min: 1, max: 1_000_000 } as const;

/** The bounds of a port. */
export const portBounds = { min: 1, max: 65_535 } as const;

/** A percentage: 0 to 100. */
export const percentBounds: NumberBounds = { min: 0, max: 100, isPercent: true };

/** A percentage that is not zero: above 0 to 100. */
export const positivePercentBounds: NumberBounds = { ...percentBounds, isMinExcluded: true };

/** Range of valid durations, in milliseconds. */
export interface DurationBounds {
  readonly minMs: number;
  readonly maxMs: number;
}

/** Reads a number with or without a fraction, in plain digits; undefined if it is wrong. */
export function readNumber(
  reader: NodeReader,
  field: Field,
  bounds: NumberBounds,
): number | undefined {
  const { min, max, isMinExcluded, isPercent } = bounds;
  const what = isPercent ? "a percentage" : "a number";
  const expected = `${what}, ${isMinExcluded ? "above " : ""}${min} to ${max}`;
  const place = reader.required(field, expected);
  const node = reader.contentOf(field);
  if (place === undefined || node === undefined) return undefined;
  const written = isScalar(node) ? String(node.source ?? "") : "";
  const isPlain = isScalar(node) && node.type === Scalar.PLAIN && plainNumber.test(written);
  if (!isPlain) {
    const message = isScalar(node)
      ? `${quoteText(written)} is not a number`
      : "this is not a number";
    const suggestion = isPercent ? meantPercent(written) : meantNumber(written);
    return reader.reportContent(place, { id: "HG202", message, expected, suggestion });
  }
  const value = Number(written);
  if (value >= min && value <= max && (value > min || !isMinExcluded)) return value + 0;
  const message = `${quoteText(written)} is out of range`;
  return reader.reportContent(place, { id: "HG141", message, expected });
}

const plainNumber = /^-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,15})?$/;

/** Returns the number that `75%`, `.75` or a number in quotes probably meant. */
function meantNumber(written: string): string | undefined {
  const percent = /^([0-9]{1,3})%$/.exec(written)?.[1];
  if (percent !== undefined) return String(Number(percent) / 100);
  const text = written.startsWith(".") ? `0${written}` : written;
  return plainNumber.test(text) ? text : undefined;
}

/** Returns the number that `20%` or `20 %` probably meant. */
function meantPercent(written: string): string | undefined {
  const number = written.replace(/ ?%$/, "");
  return plainNumber.test(number) ? number : undefined;
}

/** Source: Kubernetes, "Resource units"; whole numbers only. */
const byteUnits: Readonly<Record<string, number>> = {
  "": 1,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  k: 10 ** 3,
  M: 10 ** 6,
  G: 10 ** 9,
  T: 10 ** 12,
};

/** A number of bytes with Kubernetes units. Example: `1Ki` is 1,024, and `1k` 1,000. */
export const bytesPattern = /^([1-9][0-9]{0,14})(Ki|Mi|Gi|Ti|k|M|G|T)?$/;

const bytesRule: TextRule = {
  charsMax: 64,
  forbidden: /\p{Cc}/u,
  expected: "a byte quantity, such as 512Mi or 1Gi",
};

/** Reads a quantity of bytes in Kubernetes notation; undefined if it is wrong. */
export function readBytes(
  reader: NodeReader,
  field: Field,
  { min, max }: NumberBounds,
): number | undefined {
  const text = reader.readText(field, bytesRule);
  if (text === undefined) return undefined;
  const [, digits, unit = ""] = bytesPattern.exec(text) ?? [];
  const place = field.value ?? field.key;
  if (digits === undefined) {
    return reader.reportContent(place, {
      id: "HG241",
      message: `${quoteText(text)} is not a byte quantity`,
      expected: bytesRule.expected,
      suggestion: meantBytes(text),
    });
  }
  const value = Number(digits) * (byteUnits[unit] ?? 1);
  if (value >= min && value <= max) return value;
  const expected = `a byte quantity, ${formatBytes(min)} to ${formatBytes(max)}`;
  const message = `${quoteText(text)} is out of range`;
  return reader.reportContent(place, { id: "HG141", message, expected });
}

/** Formats bytes as in a policy. Example: 1,048,576 is `1Mi`. */
export function formatBytes(bytes: number): string {
  for (const unit of ["Ti", "Gi", "Mi", "Ki"]) {
    const count = bytes / (byteUnits[unit] ?? 1);
    if (count >= 1 && Number.isInteger(count)) return `${count}${unit}`;
  }
  return String(bytes);
}

/** Returns the quantity that `512MB`, `512 mi` or `1gib` probably meant. */
function meantBytes(text: string): string | undefined {
  const [, digits, letter = ""] = /^([1-9][0-9]{0,14}) ?([kmgt])i?b?$/i.exec(text) ?? [];
  return digits === undefined ? undefined : `${digits}${letter.toUpperCase()}i`;
}

/** Rule for a duration's text, which is parsed later. */
const durationRule: TextRule = {
  charsMax: 64,
  forbidden: /\p{Cc}/u,
  expected: "a duration like 5ms, 2s, 1m30s or 1h",
};

/** Reads a duration in milliseconds; undefined if it is wrong. */
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

/** Maximum multiple. A larger one would limit nothing. */
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

/** Returns the duration that `2`, `1.5s` or `2 s` probably meant. */
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
