import { type DescField, type DescMessage, fromJson } from "@bufbuild/protobuf";
import { quoteText } from "../../policy/problems/problem.js";
import { findNearestName } from "../../policy/text/nearest-name.js";
import type { JsonPath, ReportProblem } from "../base/check-problem.js";
import { isPlainList, isPlainMap, type PlainMap, type PlainValue } from "../base/plain-tree.js";
import type { EnvoyApi } from "./envoy-api.js";
import type { EnvoyMessage, EnvoyValue } from "./envoy-message.js";
import { readEnum, readJsonDuration, readScalar, type ScalarReading } from "./read-scalar.js";

/** Maximum nesting of messages, as in other ProtoJSON parsers. */
export const messageNestingMax = 100;

/** The context in which documents are read. */
export interface Reading {
  readonly api: EnvoyApi;
  readonly report: ReportProblem;
}

/** A value and its path. */
export interface Placed {
  readonly value: PlainValue;
  readonly path: JsonPath;
  /** Number of messages around it. Default 0. */
  readonly depth?: number;
}

/**
 * Reads a tree as an Envoy message, as strictly as Envoy does. Reports all unknown names, unknown
 * types and values of a wrong kind, and leaves them out of the result. For an `Any`, reads what it
 * contains. Returns undefined if nothing is left.
 *
 * Source: ProtoJSON; names are accepted in both of its forms.
 */
export function readTree(
  desc: DescMessage,
  placed: Placed,
  reading: Reading,
): EnvoyMessage | undefined {
  const read = readEmbedded(desc, placed, reading);
  return read?.kind === "message" ? read.message : undefined;
}

function readMessage(desc: DescMessage, placed: Placed, reading: Reading): EnvoyMessage {
  const { value, path, depth = 0 } = placed;
  const fields = new Map<string, EnvoyValue>();
  const message = { desc, path, fields };
  if (!isPlainMap(value)) {
    reportKind(placed, reading, `a map, ${desc.typeName}`);
    return message;
  }
  for (const [name, item] of Object.entries(value)) {
    const at = { value: item, path: [...path, name], depth: depth + 1 };
    const field = reading.api.field(desc, name);
    if (field === undefined) {
      reportUnknownName(desc, at, reading);
      continue;
    }
    if (field.deprecated) reportDeprecated(field, at, reading);
    if (isTakenTwice(field, fields)) {
      const hint = "keep one of the fields that exclude each other";
      reportValue(at, reading, { what: "excludes another field that is set", hint });
      continue;
    }
    const read = readField(field, at, reading);
    if (read !== undefined) fields.set(field.name, read);
  }
  return message;
}

/** Reports whether the field's other name or another member of its `oneof` is already set. */
function isTakenTwice(field: DescField, fields: ReadonlyMap<string, EnvoyValue>): boolean {
  if (fields.has(field.name)) return true;
  return field.oneof?.fields.some(({ name }) => fields.has(name)) ?? false;
}

function readField(field: DescField, placed: Placed, reading: Reading): EnvoyValue | undefined {
  switch (field.fieldKind) {
    case "scalar":
      return scalarValue(placed, reading, readScalar(field.scalar, placed.value));
    case "enum":
      return scalarValue(placed, reading, readEnum(field.enum, placed.value));
    case "message":
      return readEmbedded(field.message, placed, reading);
    case "list":
      return readList(field, placed, reading);
    default:
      return readMap(field, placed, reading);
  }
}

function readList(
  field: DescField & { fieldKind: "list" },
  placed: Placed,
  reading: Reading,
): EnvoyValue | undefined {
  const { value, path } = placed;
  if (!isPlainList(value)) return reportKind(placed, reading, "a list");
  const items = value.map((item, i) => {
    const at = { ...placed, value: item, path: [...path, i] };
    if (field.listKind === "message") return readEmbedded(field.message, at, reading);
    const read =
      field.listKind === "enum" ? readEnum(field.enum, item) : readScalar(field.scalar, item);
    return scalarValue(at, reading, read);
  });
  return { kind: "list", path, items: items.filter((item) => item !== undefined) };
}

function readMap(
  field: DescField & { fieldKind: "map" },
  placed: Placed,
  reading: Reading,
): EnvoyValue | undefined {
  const { value, path } = placed;
  if (!isPlainMap(value)) return reportKind(placed, reading, "a map");
  const entries = new Map<string, EnvoyValue>();
  for (const [key, item] of Object.entries(value)) {
    const at = { ...placed, value: item, path: [...path, key] };
    const readKey = readScalar(field.mapKey, key);
    if (readKey.kind === "wrong") reportKind({ ...at, value: key }, reading, readKey.expected);
    const read =
      field.mapKind === "message"
        ? readEmbedded(field.message, at, reading)
        : scalarValue(
            at,
            reading,
            field.mapKind === "enum" ? readEnum(field.enum, item) : readScalar(field.scalar, item),
          );
    if (read !== undefined) entries.set(key, read);
  }
  return { kind: "map", path, entries };
}

function scalarValue(
  placed: Placed,
  reading: Reading,
  read: ScalarReading,
): EnvoyValue | undefined {
  if (read.kind === "wrong") return reportKind(placed, reading, read.expected);
  return { kind: "scalar", path: placed.path, value: read.value };
}

/** Messages with a special form in JSON. Source: ProtoJSON. */
const jsonForms: ReadonlySet<string> = new Set([
  "google.protobuf.Struct",
  "google.protobuf.Value",
  "google.protobuf.ListValue",
  "google.protobuf.FieldMask",
  "google.protobuf.Timestamp",
]);

function readEmbedded(desc: DescMessage, placed: Placed, reading: Reading): EnvoyValue | undefined {
  const { path, value, depth = 0 } = placed;
  const name = desc.typeName;
  if (depth >= messageNestingMax) {
    return reportValue(placed, reading, { what: "is nested too deeply", hint: "use fewer levels" });
  }
  if (!name.startsWith("google.protobuf.")) {
    return { kind: "message", path, message: readMessage(desc, placed, reading) };
  }
  if (name === "google.protobuf.Any") return readAny(placed, reading);
  if (name === "google.protobuf.Duration") {
    const seconds = readJsonDuration(value);
    if (seconds !== undefined) return { kind: "duration", path, seconds };
    return reportKind(placed, reading, 'a duration such as "0.25s"');
  }
  if (jsonForms.has(name)) return readJsonForm(desc, placed, reading);
  const wrapped = /^google\.protobuf\.\w+Value$/.test(name) ? desc.field["value"] : undefined;
  if (wrapped?.fieldKind === "scalar") {
    return scalarValue(placed, reading, readScalar(wrapped.scalar, value));
  }
  return { kind: "message", path, message: readMessage(desc, placed, reading) };
}

function readJsonForm(desc: DescMessage, placed: Placed, reading: Reading): EnvoyValue | undefined {
  const { path, value, depth = 0 } = placed;
  const isText = desc.typeName.endsWith("FieldMask") || desc.typeName.endsWith("Timestamp");
  if (desc.typeName.endsWith("Struct") && !isPlainMap(value)) {
    return reportKind(placed, reading, "a map");
  }
  if (desc.typeName.endsWith("ListValue") && !isPlainList(value)) {
    return reportKind(placed, reading, "a list");
  }
  if (isText && typeof value !== "string") return reportKind(placed, reading, "a text");
  try {
    fromJson(desc, JSON.parse(JSON.stringify(value)), {
      recursionLimit: messageNestingMax - depth,
    });
  } catch (error) {
    const words = error instanceof Error ? error.message : "it cannot be parsed";
    const what = `cannot be parsed as ${desc.typeName}: ${words.slice(0, 200)}`;
    return reportValue(placed, reading, { what, hint: "write it as the API defines it" });
  }
  return { kind: "json", path, value };
}

/** Reads a message whose type is stated next to its fields. */
function readAny(placed: Placed, reading: Reading): EnvoyValue | undefined {
  const { value, path, depth = 0 } = placed;
  if (!isPlainMap(value)) return reportKind(placed, reading, "a map with `@type`");
  // Source: envoy.config.route.v3.FilterConfig, whose empty `config` enables a filter.
  const isEmpty = Object.keys(value).length === 0;
  if (isEmpty && path.at(-1) === "config") return { kind: "json", path, value };
  const { "@type": url, ...rest } = value;
  if (typeof url !== "string") return reportKind(placed, reading, "a map with `@type`");
  const name = url.slice(url.lastIndexOf("/") + 1);
  const desc = url.includes("/") ? reading.api.message(name) : undefined;
  if (desc === undefined) {
    reading.report({
      id: "HG450",
      path: [...path, "@type"],
      message: `${quoteText(url)} is not a type of Envoy's API`,
      hint: "write `type.googleapis.com/` and the full name of one of its messages",
    });
    return undefined;
  }
  if (isOfOwnForm(desc)) {
    const held = { value: rest["value"] ?? {}, path: [...path, "value"], depth: depth + 1 };
    return readEmbedded(desc, held, reading);
  }
  return readEmbedded(desc, { value: rest satisfies PlainMap, path, depth: depth + 1 }, reading);
}

function isOfOwnForm({ typeName }: DescMessage): boolean {
  return jsonForms.has(typeName) || /^google\.protobuf\.(Duration|Any|\w+Value)$/.test(typeName);
}

function reportUnknownName(desc: DescMessage, { path }: Placed, { report }: Reading): void {
  const name = String(path.at(-1));
  const known = desc.fields.map((field) => field.name);
  const nearest = findNearestName(name, known);
  report({
    id: "HG450",
    path,
    message: `${quoteText(name)} is not a field of ${desc.typeName}`,
    hint: nearest === undefined ? namesHint(known) : `did you mean ${nearest}`,
  });
}

function reportDeprecated(
  { name, parent }: DescField,
  { path }: Placed,
  { report }: Reading,
): void {
  report({
    id: "HG457",
    path,
    message: `${quoteText(name)} is deprecated in ${parent.typeName}`,
    hint: "use the replacement in Envoy's documentation",
  });
}

/** Maximum number of names that a hint lists. */
const namesListedMax = 12;

function namesHint(known: readonly string[]): string {
  if (known.length === 0) return "it has no fields";
  const shown = known.slice(0, namesListedMax).join(", ");
  return known.length > namesListedMax ? `such as ${shown}` : `use ${shown}`;
}

function reportKind(placed: Placed, reading: Reading, expected: string): undefined {
  const { value } = placed;
  const what = isPlainList(value)
    ? "is a list"
    : typeof value === "object"
      ? "is a map"
      : `is ${typeof value === "string" ? quoteText(value) : String(value)}`;
  return reportValue(placed, reading, { what, hint: `write ${expected}` });
}

function reportValue(
  { path }: Placed,
  { report }: Reading,
  { what, hint }: { readonly what: string; readonly hint: string },
): undefined {
  const name = path.findLast((part) => typeof part === "string") ?? "it";
  report({ id: "HG451", path, message: `${quoteText(name)} ${what}`, hint });
  return undefined;
}
