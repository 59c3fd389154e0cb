import { quoteText } from "../problems/problem.js";
import { formatDuration } from "../text/duration.js";
import type { ChangeEffect, ChangeTraits, Form, MapForm, NameRow } from "../text/form.js";
import { formatBytes } from "../text/quantities.js";
import { groupThousands } from "./limit-words.js";
import { opposite } from "./policy-change.js";

/** A field that differs. */
export interface FieldChange {
  /** Its name in a policy. Example: `circuitBreakers.maxRequests`. */
  readonly name: string;
  /** Undefined: it was absent. */
  readonly was: unknown;
  /** Undefined: it is now absent. */
  readonly is: unknown;
  readonly words: string;
  readonly effect: ChangeEffect;
  /** Whether proxies receive it by configuration, which must be generated again. */
  readonly isGenerated: boolean;
}

/**
 * Returns the fields in which two values differ, each described in words; defaults are marked.
 *
 * @param form names of the fields and their defaults
 * @param isGenerated of fields that do not declare it
 */
export function fieldChanges(wanted: {
  readonly before: object;
  readonly after: object;
  readonly form: MapForm;
  readonly isGenerated: boolean;
}): readonly FieldChange[] {
  const { isGenerated, ...pair } = wanted;
  return compareMaps({ ...pair, traits: { isGenerated }, path: [] });
}

interface MapPair {
  readonly before: object;
  readonly after: object;
  readonly form: MapForm | undefined;
  readonly path: readonly string[];
  /** Traits of the map. They also apply to fields without a declaration. */
  readonly traits: ChangeTraits;
}

function compareMaps({
  before,
  after,
  form,
  path,
  traits: outer,
}: MapPair): readonly FieldChange[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((field) => {
    const [was, is] = [memberOf(before, field), memberOf(after, field)];
    if (textOf(was) === textOf(is)) return [];
    const declared = declaredAs(form, field);
    const here = [...path, ...declared.names];
    const { row = outer } = declared;
    const { larger = "different", isGenerated = outer.isGenerated === true } = row;
    const traits = { larger, isGenerated };
    if (isMap(was) && isMap(is)) {
      return compareMaps({ before: was, after: is, form: declared.form, path: here, traits });
    }
    const name = here.join(".");
    const defaultValue = declared.row?.default;
    const say = (value: unknown): string => {
      const isDefault = defaultValue !== undefined && textOf(value) === textOf(defaultValue);
      return `${valueWords(value, field, declared)}${isDefault ? " (the default)" : ""}`;
    };
    const effect = effectOf({ was, is }, row);
    return [{ name, was, is, words: changeWords({ name, was, is, say }), effect, isGenerated }];
  });
}

function effectOf(
  { was, is }: Pick<FieldChange, "was" | "is">,
  { larger = "different", added = "different" }: ChangeTraits,
): ChangeEffect {
  if (was === undefined) return added;
  if (is === undefined) return opposite(added);
  if (typeof was !== "number" || typeof is !== "number") return "different";
  return is > was ? larger : opposite(larger);
}

function changeWords(change: {
  readonly name: string;
  readonly was: unknown;
  readonly is: unknown;
  readonly say: (value: unknown) => string;
}): string {
  const { name, was, is, say } = change;
  if (was === undefined) return `${name} is new: ${say(is)}`;
  if (is === undefined) return `${name} is removed: it was ${say(was)}`;
  const [old, now] = [say(was), say(is)];
  return old === now ? `details of ${name} change` : `${name} changes from ${old} to ${now}`;
}

function memberOf(map: object, name: string): unknown {
  return Object.entries(map).find(([own]) => own === name)?.[1];
}

function isMap(value: unknown): value is object {
  return value instanceof Object && !Array.isArray(value) && !(value instanceof Set);
}

/** Returns a value as JSON, with sets as lists. */
function textOf(value: unknown): string {
  const text = JSON.stringify(value, (_, part: unknown) =>
    part instanceof Set ? [...part] : part,
  );
  return text ?? "";
}

/** The name of a field in a policy, and its declaration. */
interface Declared {
  /** Relative to the map. */
  readonly names: readonly string[];
  readonly row?: NameRow;
  /** The form of the field's own value. */
  readonly form: MapForm | undefined;
}

/** Fields without a name in a policy: their content is in the map above. */
const nameless: readonly string[] = ["settings", "place"];

/** Returns the declaration of a field: its own, or that of the only inner map that has one. */
function declaredAs(form: MapForm | undefined, field: string): Declared {
  if (nameless.includes(field)) return { names: [], form };
  const rows = Object.entries(form?.rows ?? {});
  const own = rows.filter(([name, row]) => (row.as ?? name) === field);
  const inner = rows.flatMap(([outer, { form: value }]) =>
    Object.entries(mapOf(value)?.rows ?? {})
      .filter(([name, row]) => (row.as ?? name) === field)
      .map(([name, row]) => ({ names: [outer, name], row })),
  );
  const [found] = own.map(([name, row]) => ({ names: [name], row }));
  const best = found ?? (inner.length === 1 ? inner[0] : undefined);
  if (best === undefined) return { names: [plainName(field)], form: undefined };
  return { ...best, form: mapOf(best.row.form) };
}

function mapOf(form: Form): MapForm | undefined {
  if (form.kind === "map") return form.map();
  return form.kind === "any" ? form.of.map(mapOf).find((one) => one !== undefined) : undefined;
}

/** Returns a name as in a policy for an undeclared field: `waitMsMax` is `maxWait`. */
function plainName(field: string): string {
  const [, stem = field, bound] = /^(.+?)(Max|Min)$/.exec(field) ?? [];
  const short = stem.replace(/(?:Ms|Bytes|Ratio|Percent|Seconds)$/, "") || stem;
  if (bound === undefined) return short;
  return `${bound.toLowerCase()}${short.charAt(0).toUpperCase()}${short.slice(1)}`;
}

/** Maximum number of parts of a value that are reported. */
export const reportedPartsMax = 8;

function valueWords(value: unknown, field: string, declared?: Declared): string {
  if (value === undefined) return "off";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return numberWords(value, field, declared?.row?.form);
  if (typeof value === "string") return quoteText(value);
  if (value instanceof Set) return valueWords([...value], field);
  if (Array.isArray(value)) {
    if (value.length === 0) return "none";
    return shortened(value.map((one: unknown) => itemWords(one, field)));
  }
  if (!isMap(value)) return "off";
  const parts = Object.entries(value)
    .filter(([, one]) => one !== undefined)
    .map(([name, one]) => {
      const own = declaredAs(declared?.form, name);
      return `${own.names.join(".")} ${valueWords(one, name, own)}`;
    });
  return parts.length === 0 ? "on" : shortened(parts);
}

/** Describes a descriptor by its keys, and other items as they are. */
function itemWords(item: unknown, field: string): string {
  if (!isMap(item)) return valueWords(item, field);
  const parts = memberOf(item, "parts");
  if (!Array.isArray(parts)) return textOf(item);
  const keys = parts.map((part: unknown) => (isMap(part) ? String(memberOf(part, "key")) : ""));
  return `[${keys.join(", ")}]`;
}

function shortened(parts: readonly string[]): string {
  const more = parts.length - reportedPartsMax;
  if (more <= 0) return parts.join(", ");
  return `${parts.slice(0, reportedPartsMax).join(", ")} and ${more} more`;
}

/** Formats a number by its form, or by the unit at the end of its name. */
function numberWords(value: number, field: string, form?: Form): string {
  if (form?.kind === "duration") return formatDuration(value * (form.unitMs ?? 1));
  if (/Ms(?:Max|Min)?$/.test(field) && Number.isInteger(value)) return formatDuration(value);
  if (form?.kind === "bytes") return formatBytes(value);
  if (/Percent(?:Max|Min)?$/.test(field)) return `${value} %`;
  return Number.isInteger(value) ? groupThousands(value) : String(value);
}
