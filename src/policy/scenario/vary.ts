import { type Document, isMap, isScalar, isSeq, parseDocument } from "yaml";
import type { PolicyText } from "../parse.js";
import { listWords, quoteText } from "../problems/problem.js";
import { findNearestName } from "../text/nearest-name.js";

import { scenarioForm } from "./parse-scenario.js";

/** Maximum number of runs that are compared. */
export const variedRunsMax = 12;

/** Number of values of a range `from..to`, including both ends. */
const rangeValuesCount = 5;

/** A place in a scenario or its policy, and the values that it takes in turn. */
export interface Variation {
  readonly path: string;
  readonly values: readonly string[];
}

/** Reads `path=a,b,c` or `path=10..200`; returns a sentence if it is neither. */
export function parseVariation(text: string): Variation | string {
  const [, path = "", written = ""] = /^([^=]{1,200})=(.{1,1000})$/.exec(text) ?? [];
  if (path === "") return `${quoteText(text)} is not path=a,b,c or path=10..200`;
  const values = rangeValues(written) ?? written.split(",").map((value) => value.trim());
  if (values.some((value) => value === "")) return `a value of ${quoteText(text)} is empty`;
  return { path, values };
}

/** Returns evenly spaced numbers of a range, or spaced by ratio if the ends differ tenfold. */
function rangeValues(written: string): readonly string[] | undefined {
  const form = /^([0-9]+(?:\.[0-9]+)?)([a-z]*)\.\.([0-9]+(?:\.[0-9]+)?)([a-z]*)$/;
  const [, from, fromUnit, to, unit] = form.exec(written) ?? [];
  if (from === undefined || to === undefined) return undefined;
  if (fromUnit !== "" && fromUnit !== unit) return undefined;
  const [low, high] = [Number(from), Number(to)];
  const isWhole = Number.isInteger(low) && Number.isInteger(high);
  const isByRatio = low > 0 && high / low >= 10;
  const values = Array.from({ length: rangeValuesCount }, (_, i) => {
    const part = i / (rangeValuesCount - 1);
    const value = isByRatio ? low * (high / low) ** part : low + (high - low) * part;
    return `${isWhole ? Math.round(value) : Number(value.toPrecision(4))}${unit ?? ""}`;
  });
  return [...new Set(values)];
}

/** The texts of a scenario and of its policy. */
export interface ScenarioTexts {
  readonly scenario: PolicyText;
  /** Empty: nothing is limited. */
  readonly policies: readonly PolicyText[];
}

/** Keeps the rest of a changed text as it was, as far as possible. */
const asWritten = { lineWidth: 0, flowCollectionPadding: false };

/** One place and its value. */
export interface VariedSetting {
  readonly path: string;
  readonly value: string;
}

/** Returns the texts with values set at places; a sentence if a place is ambiguous or unknown. */
export function varyTexts(
  texts: ScenarioTexts,
  settings: readonly VariedSetting[],
): ScenarioTexts | string {
  let changed = texts;
  for (const setting of settings) {
    const next = varyText(changed, setting);
    if (typeof next === "string") return next;
    changed = next;
  }
  return changed;
}

function varyText(
  { scenario, policies }: ScenarioTexts,
  { path, value }: VariedSetting,
): ScenarioTexts | string {
  const parsed = [scenario, ...policies].map((file) => {
    return { file, document: parseDocument(file.text) };
  });
  const places = parsed.flatMap(({ document }) => placesIn(document));
  const found = findPlace(places, path.split("."));
  if (typeof found === "string") return found;
  found.document.setIn(found.path, parseDocument(value).contents);
  const [first = scenario, ...others] = parsed.map(({ file, document }) =>
    document === found.document ? { ...file, text: document.toString(asWritten) } : file,
  );
  return { scenario: first, policies: others };
}

interface Place {
  readonly document: Document.Parsed;
  /** Keys and indexes in the document. */
  readonly path: readonly (string | number)[];
  /** The same path, with list items by their names. */
  readonly names: readonly string[];
}

function findPlace(places: readonly Place[], segments: readonly string[]): Place | string {
  const found = places.filter((place) => endsWith(place.names, segments));
  const [only, ...others] = found;
  if (only !== undefined && others.length === 0) return only;
  const path = segments.join(".");
  if (only !== undefined) {
    const full = found.slice(0, 5).map(({ names }) => names.join("."));
    return `${quoteText(path)} is in ${found.length} places: ${listWords(full)}`;
  }
  const leaf = segments.at(-1) ?? "";
  const parents = places.filter(({ names }) => endsWith(names, segments.slice(0, -1)));
  const [parent, ...otherParents] = segments.length > 1 ? parents : [];
  if (parent !== undefined && otherParents.length === 0) {
    return { ...parent, path: [...parent.path, leaf], names: [...parent.names, leaf] };
  }
  const [document] = places.map((place) => place.document);
  if (document !== undefined && segments.length === 1 && Object.hasOwn(scenarioForm.rows, leaf)) {
    return { document, path: [leaf], names: [leaf] };
  }
  const all = new Set(places.map(({ names }) => names.at(-1) ?? ""));
  // Indexes in lists are not misspelt names.
  const known = [...all].filter((name) => !/^\d+$/.test(name));
  const nearest = findNearestName(leaf, known);
  const hint = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
  const where = 'write where it belongs, such as "orders.admission.maxInFlight"';
  return `neither the scenario nor its policy has ${quoteText(path)}${hint || `: ${where}`}`;
}

function endsWith(names: readonly string[], segments: readonly string[]): boolean {
  const offset = names.length - segments.length;
  return offset >= 0 && segments.every((segment, i) => names[offset + i] === segment);
}

/** Returns every place of a document. The content of aliases is only at their anchors. */
function placesIn(document: Document.Parsed): readonly Place[] {
  const places: Place[] = [];
  const walk = (node: unknown, at: Pick<Place, "path" | "names">): void => {
    if (at.path.length > 0) places.push({ document, ...at });
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        const name = isScalar(key) ? String(key.value) : "";
        walk(value, { path: [...at.path, name], names: [...at.names, name] });
      }
    } else if (isSeq(node)) {
      for (const [i, item] of node.items.entries()) {
        walk(item, { path: [...at.path, i], names: [...at.names, itemName(item) ?? String(i)] });
      }
    }
  };
  walk(document.contents, { path: [], names: [] });
  return places;
}

function itemName(item: unknown): string | undefined {
  if (!isMap(item)) return undefined;
  for (const name of ["name", "domain", "key"]) {
    const value = item.get(name);
    if (typeof value === "string") return value;
  }
  return undefined;
}
