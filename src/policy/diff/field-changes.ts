import { quoteText } from "../problems/problem.js";
import { formatDuration } from "../text/duration.js";
import { formatBytes } from "../text/quantities.js";
import { grouped } from "./limit-words.js";

/** A field that differs. */
export interface FieldChange {
  /** As a policy would name it. Example: `circuitBreakers.maxRequests`. */
  readonly name: string;
  /** Undefined: it was not there. */
  readonly was: unknown;
  /** Undefined: it is not there any more. */
  readonly is: unknown;
  readonly words: string;
}

/**
 * The fields in which two values differ, each in words; what is usual is called so.
 *
 * @param usual what holds where nothing is said, as far as it is known
 */
export function fieldChanges(wanted: {
  readonly before: object;
  readonly after: object;
  readonly usual: object;
}): readonly FieldChange[] {
  return compareMaps({ ...wanted, path: [] });
}

interface MapPair {
  readonly before: object;
  readonly after: object;
  readonly usual: object;
  readonly path: readonly string[];
}

function compareMaps({ before, after, usual, path }: MapPair): readonly FieldChange[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((field) => {
    const [was, is] = [memberOf(before, field), memberOf(after, field)];
    if (textOf(was) === textOf(is)) return [];
    const ownUsual = memberOf(usual, field);
    const here = [...path, field];
    if (isMap(was) && isMap(is)) {
      return compareMaps({
        before: was,
        after: is,
        usual: isMap(ownUsual) ? ownUsual : {},
        path: here,
      });
    }
    const name = nameOf(here);
    // What a block holds that is asked for in one word is no default: without the word it is off.
    const hasUsual = ownUsual !== undefined && !isMap(ownUsual);
    const say = (value: unknown): string => {
      const isUsual = hasUsual && textOf(value) === textOf(ownUsual);
      return `${valueWords(value, field)}${isUsual ? " (the default)" : ""}`;
    };
    return [{ name, was, is, words: changeWords({ name, was, is, say }) }];
  });
}

function changeWords(change: {
  readonly name: string;
  readonly was: unknown;
  readonly is: unknown;
  readonly say: (value: unknown) => string;
}): string {
  const { name, was, is, say } = change;
  if (was === undefined) return `${name} is new: ${say(is)}`;
  if (is === undefined) return `${name} goes: it was ${say(was)}`;
  const [old, now] = [say(was), say(is)];
  return old === now ? `${name} changes in its details` : `${name}: ${old} becomes ${now}`;
}

function memberOf(map: object, name: string): unknown {
  return Object.entries(map).find(([own]) => own === name)?.[1];
}

function isMap(value: unknown): value is object {
  return value instanceof Object && !Array.isArray(value) && !(value instanceof Set);
}

/** Sets as lists; everything else as JSON has it. */
function textOf(value: unknown): string {
  const text = JSON.stringify(value, (_, part: unknown) =>
    part instanceof Set ? [...part] : part,
  );
  return text ?? "";
}

/** Fields whose names here and in a policy differ by more than their order. */
const renamed: Readonly<Record<string, string>> = {
  sizeMax: "size",
  keysMax: "keysMax",
  expectedCount: "expected",
  everyMs: "every",
  ejectionPercentMax: "maxEjectionPercent",
  usual: "default",
  isMutual: "mutual",
};

/** Names as a policy has them: `waitMsMax` is `maxWait`, `requestMs` is `request`. */
function nameOf(path: readonly string[]): string {
  return path
    .filter((field) => field !== "settings" && field !== "place")
    .map((field) => renamed[field] ?? plainName(field))
    .join(".");
}

function plainName(field: string): string {
  const [, stem = field, bound] = /^(.+?)(Max|Min)$/.exec(field) ?? [];
  const short = stem.replace(/(?:Ms|Bytes|Ratio|Percent|Seconds)$/, "") || stem;
  if (bound === undefined) return short;
  return `${bound.toLowerCase()}${short.charAt(0).toUpperCase()}${short.slice(1)}`;
}

/** Most parts of a value that are told. */
export const toldPartsMax = 8;

function valueWords(value: unknown, field: string): string {
  if (value === undefined) return "off";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return numberWords(value, field);
  if (typeof value === "string") return quoteText(value);
  if (value instanceof Set) return valueWords([...value], field);
  if (Array.isArray(value)) {
    if (value.length === 0) return "none";
    return shortened(value.map((one: unknown) => itemWords(one, field)));
  }
  if (!isMap(value)) return "off";
  const parts = Object.entries(value)
    .filter(([, one]) => one !== undefined)
    .map(([name, one]) => `${nameOf([name])} ${valueWords(one, name)}`);
  return parts.length === 0 ? "on" : shortened(parts);
}

/** A descriptor by its keys, others as they are. */
function itemWords(item: unknown, field: string): string {
  if (!isMap(item)) return valueWords(item, field);
  const parts = memberOf(item, "parts");
  if (!Array.isArray(parts)) return textOf(item);
  const keys = parts.map((part: unknown) => (isMap(part) ? String(memberOf(part, "key")) : ""));
  return `[${keys.join(", ")}]`;
}

function shortened(parts: readonly string[]): string {
  const more = parts.length - toldPartsMax;
  if (more <= 0) return parts.join(", ");
  return `${parts.slice(0, toldPartsMax).join(", ")} and ${more} more`;
}

/** By the unit that its name ends in. */
function numberWords(value: number, field: string): string {
  if (/Ms(?:Max|Min)?$/.test(field) && Number.isInteger(value)) return formatDuration(value);
  if (/Bytes(?:Max|Min)?$|^bytesMax$/.test(field)) return formatBytes(value);
  if (/Percent(?:Max|Min)?$/.test(field)) return `${value} %`;
  return Number.isInteger(value) ? grouped(value) : String(value);
}
