import { formatDuration } from "./text/duration.js";
import type { Form, MapForm, NameRow } from "./text/form.js";
import { formatBytes } from "./text/quantities.js";

/** A name of the language, as a reference shows it. */
export interface ReferenceRow {
  /** From the file's top, through lists. Example: `spec.services[].retries.numRetries`. */
  readonly path: string;
  /** What may stand there, in words. Example: `whole number`. */
  readonly type: string;
  /** Which values of the type. Example: `1 to 10`. Undefined: all. */
  readonly bounds: string | undefined;
  /** As it would be written; undefined where there is none, or where it follows from others. */
  readonly writtenDefault: NameRow["writtenDefault"];
  readonly isRequired: boolean;
  /** What it is for. */
  readonly docs: string;
}

/**
 * A row for each name that a map may hold, and below it for each of those that its value may hold,
 * in the order in which they are best written. What may stand in itself is told once.
 */
export function referenceRows(form: MapForm): readonly ReferenceRow[] {
  return rowsOf(form, "", []);
}

function rowsOf(map: MapForm, above: string, outer: readonly MapForm[]): readonly ReferenceRow[] {
  return map.shape.names.flatMap((name) => {
    const row = map.rows[name];
    if (row === undefined) return [];
    const { form, writtenDefault, docs } = row;
    const path = above === "" ? name : `${above}.${name}`;
    const types = [...new Set(leavesOf(form).map(typeWords))];
    const bounds = [...new Set(leavesOf(form).flatMap((leaf) => boundWords(leaf) ?? []))];
    const own = {
      path,
      type: types.join(", or "),
      bounds: bounds.length === 0 ? undefined : bounds.join(", or "),
      writtenDefault,
      isRequired: map.required.includes(name),
      docs,
    };
    const below = mapsOf(form).filter(({ inner }) => inner !== map && !outer.includes(inner));
    const inside = [...outer, map];
    return [own, ...below.flatMap(({ inner, items }) => rowsOf(inner, `${path}${items}`, inside))];
  });
}

/** The forms that a value may have; one for what is not one of several. */
function leavesOf(form: Form): readonly Form[] {
  return form.kind === "any" ? form.of.flatMap(leavesOf) : [form];
}

/** The maps that a value may be, or that its items may. */
function mapsOf(form: Form, items = ""): readonly { inner: MapForm; items: string }[] {
  if (form.kind === "map") return [{ inner: form.map(), items }];
  if (form.kind === "list") return mapsOf(form.item, `${items}[]`);
  return form.kind === "any" ? form.of.flatMap((each) => mapsOf(each, items)) : [];
}

function typeWords(form: Form): string {
  switch (form.kind) {
    case "words":
      return form.words
        .filter((word) => word !== "")
        .map((word) => `\`${word}\``)
        .join(", ");
    case "list":
      return `list of ${leavesOf(form.item).map(typeWords).join(", or ")}`;
    case "texts":
      return `map of names to ${typeWords(form.value)}`;
    case "any":
      return form.of.map(typeWords).join(", or ");
    case "number":
      return form.bounds.isPercent ? "percentage" : "number";
    default:
      return kindWords[form.kind];
  }
}

const kindWords = {
  text: "text",
  whole: "whole number",
  duration: "duration",
  bytes: "quantity of bytes",
  flag: "true or false",
  ratelimitBoolean: "true or false",
  map: "map",
  json: "map of anything",
} as const;

function boundWords(form: Form): string | undefined {
  switch (form.kind) {
    case "text":
      return `at most ${form.charsMax} characters`;
    case "whole":
      return `${form.min} to ${form.max}`;
    case "number": {
      const { min, max, isMinExcluded } = form.bounds;
      return `${isMinExcluded ? "above " : ""}${min} to ${max}`;
    }
    case "duration":
      return `${formatDuration(form.bounds.minMs)} to ${formatDuration(form.bounds.maxMs)}`;
    case "bytes":
      return `${formatBytes(form.bounds.min)} to ${formatBytes(form.bounds.max)}`;
    case "list":
      return form.max === undefined ? undefined : `${form.min} to ${form.max} items`;
    case "texts":
      return `1 to ${form.max} names`;
    default:
      return undefined;
  }
}
