import { type DescEnum, type DescField, ScalarType } from "@bufbuild/protobuf";
import { many } from "../../core/base/many.js";
import type { JsonPath, ReportProblem } from "../base/check-problem.js";
import type { EnvoyApi, FieldRules } from "./envoy-api.js";
import type { EnvoyMessage, EnvoyValue } from "./envoy-message.js";
import { brokenRule } from "./value-rules.js";

/** The context in which a message is checked against rules. */
interface RuleCheck {
  readonly api: EnvoyApi;
  readonly report: ReportProblem;
  /** Whether missing values may be set elsewhere, because the message is merged into another. */
  readonly isPartial: boolean;
}

/**
 * Checks a message and everything in it against the rules that Envoy's API has in addition to its
 * types: ranges, lengths, patterns, required values.
 *
 * Source: protoc-gen-validate, `validate.rules`.
 */
export function checkRules(message: EnvoyMessage, check: RuleCheck): void {
  const { desc, fields } = message;
  for (const { field, rules } of check.api.ruledFields(desc)) {
    const value = fields.get(field.name);
    if (rules !== undefined) checkField({ message, field, rules, value }, check);
    // The rules of one field, whose message is an example, say so.
    if (value !== undefined && child(rules, "message")["skip"] !== true) checkBelow(value, check);
  }
  if (check.isPartial) return;
  for (const oneof of desc.oneofs) {
    if (!check.api.isRequired(oneof) || oneof.fields.some(({ name }) => fields.has(name))) continue;
    reportRule(check.report, message.path, {
      message: `${desc.name} sets none of ${oneof.fields.map(({ name }) => name).join(", ")}`,
      hint: "set one of them",
    });
  }
}

function checkBelow(value: EnvoyValue, check: RuleCheck): void {
  if (value.kind === "message") checkRules(value.message, check);
  else if (value.kind === "list") for (const item of value.items) checkBelow(item, check);
  else if (value.kind === "map") {
    for (const entry of value.entries.values()) checkBelow(entry, check);
  }
}

interface RuledField {
  readonly message: EnvoyMessage;
  readonly field: DescField;
  readonly rules: FieldRules;
  readonly value: EnvoyValue | undefined;
}

function checkField({ message, field, rules, value }: RuledField, check: RuleCheck): void {
  if (value === undefined) {
    if (!check.isPartial) checkMissing({ message, field, rules, value }, check);
    return;
  }
  if (value.kind === "list") checkList(value, child(rules, "repeated"), check);
  else if (value.kind === "map") checkMap(value, child(rules, "map"), check);
  else if (field.fieldKind === "enum") checkEnum(field.enum, value, { rules, check });
  else checkValue(value, rules, check);
}

/** Unknown names were already reported when the enum was read. */
function checkEnum(
  desc: DescEnum,
  value: EnvoyValue,
  { rules, check }: { readonly rules: FieldRules; readonly check: RuleCheck },
): void {
  const refused = child(rules, "enum")["notIn"];
  const name = value.kind === "scalar" ? value.value : undefined;
  const number = desc.values.find((one) => one.name === name)?.number;
  if (!Array.isArray(refused) || number === undefined || !refused.includes(number)) return;
  const message = `${nameOf(value.path)} is ${String(name)}, which is not allowed here`;
  reportRule(check.report, value.path, { message, hint: "use another value" });
}

/** Checks a value that was not set as what it then is: zero, empty or absent. */
function checkMissing({ message, field, rules }: RuledField, check: RuleCheck): void {
  if (field.oneof !== undefined) return;
  const path = [...message.path, field.name];
  const isNeeded = ["message", "duration", "any", "timestamp"].some(
    (kind) => child(rules, kind)["required"] === true,
  );
  if (isNeeded) {
    const text = `${message.desc.name} has no ${field.name}`;
    reportRule(check.report, message.path, { message: text, hint: `write ${field.name}` });
    return;
  }
  if (field.fieldKind === "list") {
    checkList({ kind: "list", path, items: [] }, child(rules, "repeated"), check);
  } else if (field.fieldKind === "map") {
    checkMap({ kind: "map", path, entries: new Map() }, child(rules, "map"), check);
  } else if (field.fieldKind === "enum") {
    const zeroValue = field.enum.values[0]?.name ?? "";
    checkEnum(field.enum, { kind: "scalar", path, value: zeroValue }, { rules, check });
  } else if (field.fieldKind === "scalar" && !field.proto.proto3Optional) {
    checkValue({ kind: "scalar", path, value: zeroOf(field.scalar) }, rules, check);
  }
}

function zeroOf(type: ScalarType): string | number | boolean {
  if (type === ScalarType.STRING || type === ScalarType.BYTES) return "";
  return type === ScalarType.BOOL ? false : 0;
}

function checkList(list: EnvoyValue & { kind: "list" }, rules: FieldRules, check: RuleCheck): void {
  const count = list.items.length;
  checkCount(list.path, count, {
    least: Number(rules["minItems"] ?? 0),
    most: Number(rules["maxItems"] ?? Number.POSITIVE_INFINITY),
    report: check.report,
  });
  const items = child(rules, "items");
  for (const item of list.items) checkValue(item, items, check);
  if (rules["unique"] !== true) return;
  const values = list.items.map((item) => (item.kind === "scalar" ? item.value : item));
  if (new Set(values).size < count) {
    const message = `${nameOf(list.path)} contains the same item twice`;
    reportRule(check.report, list.path, { message, hint: "keep one of them" });
  }
}

function checkMap(map: EnvoyValue & { kind: "map" }, rules: FieldRules, check: RuleCheck): void {
  checkCount(map.path, map.entries.size, {
    least: Number(rules["minPairs"] ?? 0),
    most: Number(rules["maxPairs"] ?? Number.POSITIVE_INFINITY),
    report: check.report,
  });
  for (const [key, value] of map.entries) {
    const path = [...map.path, key];
    checkValue({ kind: "scalar", path, value: key }, child(rules, "keys"), check);
    checkValue(value, child(rules, "values"), check);
  }
}

function checkCount(
  path: JsonPath,
  count: number,
  bounds: { readonly least: number; readonly most: number; readonly report: ReportProblem },
): void {
  const { least, most, report } = bounds;
  if (count >= least && count <= most) return;
  const hint = count < least ? `write at least ${least}` : `write at most ${most}`;
  reportRule(report, path, { message: `${nameOf(path)} has ${many(count, "item")}`, hint });
}

function checkValue(value: EnvoyValue, rules: FieldRules, check: RuleCheck): void {
  const hint = brokenRule(value, rules);
  if (hint === undefined) return;
  const shown = value.kind === "scalar" || value.kind === "duration" ? ` is ${textOf(value)}` : "";
  const message = `${nameOf(value.path)}${shown === "" ? " is not allowed" : shown}`;
  reportRule(check.report, value.path, { message, hint: `it must be ${hint}` });
}

/** Maximum length of a value in a problem's message, in characters. */
const shownCharsMax = 40;

function textOf(value: EnvoyValue & { kind: "scalar" | "duration" }): string {
  if (value.kind === "duration") return `${value.seconds}s`;
  const text = JSON.stringify(value.value);
  return text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}...` : text;
}

function reportRule(
  report: ReportProblem,
  path: JsonPath,
  { message, hint }: { readonly message: string; readonly hint: string },
): void {
  report({ id: "HG452", path, message, hint });
}

function nameOf(path: JsonPath): string {
  return String(path.findLast((part) => typeof part === "string") ?? "the list");
}

/** Returns nested rules. Empty if there are none. */
function child(rules: FieldRules | undefined, name: string): FieldRules {
  const found = rules?.[name];
  return typeof found === "object" && found !== null && !Array.isArray(found) ? found : {};
}
