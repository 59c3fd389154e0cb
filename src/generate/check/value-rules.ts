import type { FieldRules } from "./envoy-api.js";
import type { EnvoyValue } from "./envoy-message.js";
import { readJsonDuration } from "./read-scalar.js";

/** Returns, in words, the requirement that a value violates. Undefined if it meets all rules. */
export function brokenRule(value: EnvoyValue, rules: FieldRules): string | undefined {
  for (const [kind, found] of Object.entries(rules)) {
    if (typeof found !== "object" || found === null || Array.isArray(found)) continue;
    const broken = brokenOfKind(kind, value, found);
    if (broken !== undefined) return broken;
  }
  return undefined;
}

function brokenOfKind(kind: string, value: EnvoyValue, rules: FieldRules): string | undefined {
  if (kind === "duration") {
    return value.kind === "duration"
      ? brokenRange(value.seconds, rules, (bound) => readJsonDuration(String(bound)) ?? 0)
      : undefined;
  }
  if (value.kind !== "scalar") return undefined;
  const { value: given } = value;
  if (rules["ignoreEmpty"] === true && (given === "" || given === 0)) return undefined;
  if (kind === "string") return typeof given === "string" ? brokenText(given, rules) : undefined;
  if (kind === "bytes") return typeof given === "string" ? brokenBytes(given, rules) : undefined;
  if (kind === "bool") {
    return rules["const"] !== undefined && given !== rules["const"]
      ? String(rules["const"])
      : undefined;
  }
  return typeof given === "number" ? brokenRange(given, rules, Number) : undefined;
}

/** Rule name, comparison of a value with the bound, and the bound's meaning in words. */
const rangeRules = [
  ["gt", (value: number, bound: number) => value > bound, "more than"],
  ["gte", (value: number, bound: number) => value >= bound, "at least"],
  ["lt", (value: number, bound: number) => value < bound, "less than"],
  ["lte", (value: number, bound: number) => value <= bound, "at most"],
] as const;

function brokenRange(
  value: number,
  rules: FieldRules,
  read: (bound: unknown) => number,
): string | undefined {
  for (const [name, holds, words] of rangeRules) {
    const bound = rules[name];
    if (bound !== undefined && !holds(value, read(bound))) return `${words} ${String(bound)}`;
  }
  return undefined;
}

/** Rule name, and the unit that it counts. */
const lengthRules = [
  ["minLen", "characters"],
  ["maxLen", "characters"],
  ["minBytes", "bytes"],
  ["maxBytes", "bytes"],
] as const;

function brokenText(text: string, rules: FieldRules): string | undefined {
  for (const [name, unit] of lengthRules) {
    const bound = rules[name];
    if (bound === undefined) continue;
    const length = unit === "bytes" ? Buffer.byteLength(text) : [...text].length;
    const isLeast = name.startsWith("min");
    if (isLeast ? length >= Number(bound) : length <= Number(bound)) continue;
    return `${isLeast ? "at least" : "at most"} ${String(bound)} ${unit} long`;
  }
  const { in: choices, prefix, suffix, pattern } = textRules(rules);
  if (choices !== undefined && !choices.includes(text)) return `one of ${choices.join(", ")}`;
  if (prefix !== undefined && !text.startsWith(prefix)) return `a text that starts with ${prefix}`;
  if (suffix !== undefined && !text.endsWith(suffix)) return `a text that ends with ${suffix}`;
  if (pattern !== undefined && !new RegExp(pattern, "u").test(text)) return `like ${pattern}`;
  return brokenHeader(text, rules);
}

function textRules(rules: FieldRules) {
  const text = (name: string): string | undefined => {
    const found = rules[name];
    return typeof found === "string" ? found : undefined;
  };
  const choices = rules["in"];
  const isList = Array.isArray(choices) && choices.length > 0;
  return {
    in: isList ? choices.map(String) : undefined,
    prefix: text("prefix"),
    suffix: text("suffix"),
    pattern: text("pattern"),
  };
}

/**
 * Envoy accepts empty text, as for a field that was not set.
 *
 * Source: protoc-gen-validate, `well_known_regex`; `strict` is the default.
 */
function brokenHeader(text: string, rules: FieldRules): string | undefined {
  if (text === "") return undefined;
  const isStrict = rules["strict"] !== false;
  if (rules["wellKnownRegex"] === "HTTP_HEADER_NAME") {
    const pattern = isStrict ? /^:?[0-9a-zA-Z!#$%&'*+.^_|~`-]+$/ : /^[^\0\n\r]+$/;
    return pattern.test(text) ? undefined : "a valid header name";
  }
  if (rules["wellKnownRegex"] === "HTTP_HEADER_VALUE") {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is forbidden.
    const pattern = isStrict ? /^[^\u0000-\u0008\u000a-\u001f\u007f]*$/ : /^[^\0\n\r]*$/;
    return pattern.test(text) ? undefined : "a valid header value, without control characters";
  }
  return undefined;
}

/** Checks the length of the bytes that the base64 text encodes. */
function brokenBytes(text: string, rules: FieldRules): string | undefined {
  const length = Math.floor((text.replace(/=+$/, "").length * 3) / 4);
  if (length < Number(rules["minLen"] ?? 0)) return `at least ${String(rules["minLen"])} bytes`;
  const most = Number(rules["maxLen"] ?? Number.POSITIVE_INFINITY);
  return length > most ? `at most ${String(rules["maxLen"])} bytes` : undefined;
}
