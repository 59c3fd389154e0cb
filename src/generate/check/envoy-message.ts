import type { DescMessage } from "@bufbuild/protobuf";
import type { JsonPath } from "../base/check-problem.js";
import type { PlainValue } from "../base/plain-tree.js";

/** A message of Envoy's as it was read from a document. */
export interface EnvoyMessage {
  readonly desc: DescMessage;
  readonly path: JsonPath;
  /** By the names that Envoy's .proto files have; only those that were written. */
  readonly fields: ReadonlyMap<string, EnvoyValue>;
}

/** A value of a field, by how it was read. */
export type EnvoyValue =
  /** Wrappers such as UInt32Value too; enums by their names; whole numbers of 64 bits too. */
  | { readonly kind: "scalar"; readonly path: JsonPath; readonly value: string | number | boolean }
  | { readonly kind: "duration"; readonly path: JsonPath; readonly seconds: number }
  /** What an `Any` holds is the message itself. */
  | { readonly kind: "message"; readonly path: JsonPath; readonly message: EnvoyMessage }
  | { readonly kind: "list"; readonly path: JsonPath; readonly items: readonly EnvoyValue[] }
  | {
      readonly kind: "map";
      readonly path: JsonPath;
      readonly entries: ReadonlyMap<string, EnvoyValue>;
    }
  /** Struct, Value, FieldMask and the like: no names of Envoy's inside. */
  | { readonly kind: "json"; readonly path: JsonPath; readonly value: PlainValue };

/** The value below a message by the names of fields; undefined where one of them is not there. */
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

/** The message below a message. */
export function messageAt(
  message: EnvoyMessage | undefined,
  ...names: readonly string[]
): EnvoyMessage | undefined {
  const value = fieldAt(message, ...names);
  return value?.kind === "message" ? value.message : undefined;
}

/** The text below a message, or an enum's name. */
export function textField(
  message: EnvoyMessage | undefined,
  ...names: readonly string[]
): string | undefined {
  const value = fieldAt(message, ...names);
  return value?.kind === "scalar" && typeof value.value === "string" ? value.value : undefined;
}

/** The number below a message; a duration as seconds. */
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

/** Whether the value below a message is true. */
export function isFieldTrue(
  message: EnvoyMessage | undefined,
  ...names: readonly string[]
): boolean {
  const value = fieldAt(message, ...names);
  return value?.kind === "scalar" && value.value === true;
}

/** The messages of a list below a message; empty where there is none. */
export function messagesAt(
  message: EnvoyMessage | undefined,
  ...names: readonly string[]
): readonly EnvoyMessage[] {
  const value = fieldAt(message, ...names);
  if (value?.kind !== "list") return [];
  return value.items.flatMap((item) => (item.kind === "message" ? [item.message] : []));
}

/** The texts of a list below a message; empty where there is none. */
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

/** Calls back for a message and every message in it, outer ones first. */
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
