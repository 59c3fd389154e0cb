import type { DescMessage } from "@bufbuild/protobuf";
import type { JsonPath } from "../base/check-problem.js";
import type { PlainValue } from "../base/plain-tree.js";

/** An Envoy message as it was read from a document. */
export interface EnvoyMessage {
  readonly desc: DescMessage;
  readonly path: JsonPath;
  /** Fields by the names in Envoy's .proto files. Only those that were set. */
  readonly fields: ReadonlyMap<string, EnvoyValue>;
}

/** A value of a field, by how it was read. */
export type EnvoyValue =
  /** Includes wrappers such as UInt32Value, enums (by name), and 64-bit integers. */
  | { readonly kind: "scalar"; readonly path: JsonPath; readonly value: string | number | boolean }
  | { readonly kind: "duration"; readonly path: JsonPath; readonly seconds: number }
  /** For an `Any`, the message that it contains. */
  | { readonly kind: "message"; readonly path: JsonPath; readonly message: EnvoyMessage }
  | { readonly kind: "list"; readonly path: JsonPath; readonly items: readonly EnvoyValue[] }
  | {
      readonly kind: "map";
      readonly path: JsonPath;
      readonly entries: ReadonlyMap<string, EnvoyValue>;
    }
  /** Struct, Value, FieldMask and the like, which contain no names of Envoy's. */
  | { readonly kind: "json"; readonly path: JsonPath; readonly value: PlainValue };

/** Returns the value at a path of field names below a message. Undefined if one is missing. */
export function fieldAt(
  message: EnvoyMessage | undefined,
  ...names: readonly string[]
): EnvoyValue | undefined {
  let at = message;
  let value: EnvoyValue | undefined;
  for (const name of names) {
    value = at?.fields.get(name);
    at = value?.kind === "message" ? value.message : undefined;
  }
  return value;
}

/** Returns the message at a path below a message. */
export function messageAt(
  message: EnvoyMessage | undefined,
  ...names: readonly string[]
): EnvoyMessage | undefined {
  const value = fieldAt(message, ...names);
  return value?.kind === "message" ? value.message : undefined;
}

/** Returns the text, or the name of an enum, at a path below a message. */
export function textField(
  message: EnvoyMessage | undefined,
  ...names: readonly string[]
): string | undefined {
  const value = fieldAt(message, ...names);
  return value?.kind === "scalar" && typeof value.value === "string" ? value.value : undefined;
}

/** Returns the number at a path below a message. A duration is in seconds. */
export function numberField(
  message: EnvoyMessage | undefined,
  ...names: readonly string[]
): number | undefined {
  const value = fieldAt(message, ...names);
  if (value?.kind === "duration") return value.seconds;
  if (value?.kind !== "scalar" || typeof value.value === "boolean") return undefined;
  const number = Number(value.value);
  return Number.isNaN(number) ? undefined : number;
}

/** Reports whether the value at a path below a message is true. */
export function isFieldTrue(
  message: EnvoyMessage | undefined,
  ...names: readonly string[]
): boolean {
  const value = fieldAt(message, ...names);
  return value?.kind === "scalar" && value.value === true;
}

/** Returns the messages of the list at a path below a message. Empty if there is none. */
export function messagesAt(
  message: EnvoyMessage | undefined,
  ...names: readonly string[]
): readonly EnvoyMessage[] {
  const value = fieldAt(message, ...names);
  if (value?.kind !== "list") return [];
  return value.items.flatMap((item) => (item.kind === "message" ? [item.message] : []));
}

/** Returns the texts of the list at a path below a message. Empty if there is none. */
export function textsAt(
  message: EnvoyMessage | undefined,
  ...names: readonly string[]
): readonly string[] {
  const value = fieldAt(message, ...names);
  if (value?.kind !== "list") return [];
  return value.items.flatMap((item) =>
    item.kind === "scalar" && typeof item.value === "string" ? [item.value] : [],
  );
}

/** Calls `visit` for a message and every message in it, outer ones first. */
export function visitMessages(message: EnvoyMessage, visit: (message: EnvoyMessage) => void): void {
  visit(message);
  for (const value of message.fields.values()) visitValue(value, visit);
}

function visitValue(value: EnvoyValue, visit: (message: EnvoyMessage) => void): void {
  if (value.kind === "message") visitMessages(value.message, visit);
  else if (value.kind === "list") for (const item of value.items) visitValue(item, visit);
  else if (value.kind === "map") {
    for (const entry of value.entries.values()) visitValue(entry, visit);
  }
}
