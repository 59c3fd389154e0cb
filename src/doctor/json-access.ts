import {
  isPlainList,
  isPlainMap,
  type PlainMap,
  type PlainValue,
} from "../generate/base/plain-tree.js";
import { dropEmpty } from "../generate/base/plain-yaml.js";
import { visibleText } from "../policy/problems/problem.js";

/** JSON as plain values, or why it is invalid. */
type ReadPlain =
  | { readonly kind: "read"; readonly value: PlainValue }
  | { readonly kind: "unreadable"; readonly why: string };

/** Reads JSON. Leaves out nulls, which mean absent in proto3's JSON. */
export function parsePlain(text: string): ReadPlain {
  try {
    const value: PlainValue | undefined = JSON.parse(text, dropEmpty);
    return value === undefined ? unreadable("it is empty") : { kind: "read", value };
  } catch (thrown) {
    const words = thrown instanceof Error ? thrown.message : "";
    return unreadable(`it is not JSON${placeOf(words, text)}`);
  }
}

function unreadable(why: string): ReadPlain {
  return { kind: "unreadable", why };
}

/** Returns the position from the parser's message, which also quotes the text. */
function placeOf(words: string, text: string): string {
  const [, digits] = /at position (\d+)/.exec(words) ?? [];
  if (digits === undefined) return ": it ends too early, or starts with something else";
  const before = text.slice(0, Number(digits)).split("\n");
  return `: line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}

/** Returns the value below another one by these names; undefined if one is missing. */
export function valueAt(
  value: PlainValue | undefined,
  ...names: readonly string[]
): PlainValue | undefined {
  let at = value;
  for (const name of names) at = isPlainMap(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  return at;
}

/** Returns a map below a value. */
export function mapAt(
  value: PlainValue | undefined,
  ...names: readonly string[]
): PlainMap | undefined {
  const found = valueAt(value, ...names);
  return isPlainMap(found) ? found : undefined;
}

/** Returns the maps of a list below a value; empty if there is none. */
export function mapsAt(
  value: PlainValue | undefined,
  ...names: readonly string[]
): readonly PlainMap[] {
  const found = valueAt(value, ...names);
  return isPlainList(found) ? found.filter(isPlainMap) : [];
}

/** Returns a text below a value, without terminal control characters; undefined for numbers. */
export function textAt(
  value: PlainValue | undefined,
  ...names: readonly string[]
): string | undefined {
  const found = valueAt(value, ...names);
  return typeof found === "string" ? found : undefined;
}

/** Returns a number below a value, also a quoted one, as JSON has those of 64 bits. */
export function numberAt(
  value: PlainValue | undefined,
  ...names: readonly string[]
): number | undefined {
  const found = valueAt(value, ...names);
  if (typeof found === "number") return found;
  if (typeof found !== "string" || !/^-?\d{1,20}(\.\d{1,9})?$/.test(found)) return undefined;
  return Number(found);
}

/** Reports whether a value below another one is true, in any form that Envoy reads. */
export function isTrueAt(value: PlainValue | undefined, ...names: readonly string[]): boolean {
  const found = valueAt(value, ...names);
  return found === true || found === "true";
}

/** Returns a duration below a value, in milliseconds. Example: `0.250s` is 250. */
export function millisecondsAt(
  value: PlainValue | undefined,
  ...names: readonly string[]
): number | undefined {
  const [, digits] = /^(\d{1,12}(?:\.\d{1,9})?)s$/.exec(textAt(value, ...names) ?? "") ?? [];
  return digits === undefined ? undefined : Number(digits) * 1_000;
}

/** Reports whether an `Any` contains a message whose type name has this end. */
export function isOfType(value: PlainValue | undefined, name: string): boolean {
  return textAt(value, "@type")?.endsWith(`/${name}`) === true;
}

/** Returns a configured name for display: short, and without terminal control characters. */
export function shownName(text: string): string {
  const isLong = text.length > shownNameCharsMax;
  return visibleText(isLong ? `${text.slice(0, shownNameCharsMax)}...` : text);
}

/** Maximum length of a name that a report shows in full. */
const shownNameCharsMax = 80;
