import {
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  type Pair,
  parseDocument,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { quoteText } from "../problems/problem.js";

/** A position in a text: names of maps, and indexes of lists from 0. */
export type TextPath = readonly (string | number)[];

/** A name of a map, and its new value. */
export interface EditedEntry {
  readonly name: string;
  /** In YAML syntax. */
  readonly value: string;
  /** One line after the value. */
  readonly comment?: string;
}

/** One edit of a text. */
export type TextEdit =
  /** Changes entries of the map at the path. */
  | { readonly kind: "set"; readonly path: TextPath; readonly entries: readonly EditedEntry[] }
  /**
   * Adds lines after the entries of the map or list at the path, with the same indentation. A list
   * in brackets takes a single line, without a dash.
   */
  | { readonly kind: "append"; readonly path: TextPath; readonly lines: readonly string[] };

/** The edited text, or a sentence that explains why the edit is impossible. */
export type EditedText =
  | { readonly kind: "edited"; readonly text: string }
  | { readonly kind: "problem"; readonly message: string };

/** Edits a YAML text. Everything else stays as written, including comments. */
export function editText(text: string, edit: TextEdit): EditedText {
  const place = findPlace(text, edit.path);
  const where = quoteText(edit.path.join("."));
  if (place === undefined) {
    const message = `${where} is not written there: it is missing, or stands behind an alias`;
    return { kind: "problem", message };
  }
  if (edit.kind === "append") {
    const { node } = place;
    if (node.flow !== true) return { kind: "edited", text: append(text, place, edit.lines) };
    if (isSeq(node)) return { kind: "edited", text: appendInside(text, node, edit.lines) };
    return { kind: "problem", message: `${where} is in braces; write it in lines of its own` };
  }
  if (!isMap(place.node)) return { kind: "problem", message: `${where} is not a map` };
  const map = { ...place, node: place.node };
  const isFlow = place.node.flow === true;
  const changed = isFlow ? rewrite(text, map, edit.entries) : replace(text, map, edit.entries);
  return { kind: "edited", text: changed };
}

interface Place<T> {
  readonly node: T;
  /** The indentation of its entries, if each is on a line of its own. */
  readonly indent: string;
  /** Whether it is an item of a list, with its first entry after the dash. */
  readonly isItem: boolean;
  /** Whether it is within brackets or braces. */
  readonly isInFlow: boolean;
}

function findPlace(text: string, path: TextPath): Place<YAMLMap | YAMLSeq> | undefined {
  let node: unknown = parseDocument(text, { logLevel: "silent" }).contents;
  let [indent, isItem, isInFlow] = ["", false, false];
  for (const step of path) {
    if (!isCollection(node)) return undefined;
    isInFlow ||= node.flow === true;
    isItem = isSeq(node);
    const pair = isMap(node) ? node.items.find(({ key }) => nameOf(key) === step) : undefined;
    const value = isSeq(node) && typeof step === "number" ? node.items[step] : pair?.value;
    indent = isItem ? columnsBefore(text, value) : `${columnsBefore(text, pair?.key)}  `;
    node = value;
  }
  if (!isCollection(node)) return undefined;
  if (node.flow !== true) indent = columnsBefore(text, node);
  return { node, indent, isItem, isInFlow };
}

function nameOf(key: unknown): string | undefined {
  return isScalar(key) ? String(key.value) : undefined;
}

/** Returns where a node begins, and where its value ends. */
function rangeOf(node: unknown): readonly [start: number, end: number] {
  const range = isNode(node) ? node.range : undefined;
  return range ? [range[0], range[1]] : [0, 0];
}

function columnsBefore(text: string, node: unknown): string {
  const [start] = rangeOf(node);
  return " ".repeat(start - (text.lastIndexOf("\n", start - 1) + 1));
}

/** Returns the end of the line that contains a position. */
function lineEnd(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  if (end === -1) return text.length;
  return text[end - 1] === "\r" ? end - 1 : end;
}

function lineBreak(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

function entryText({ name, value, comment }: EditedEntry, end = ""): string {
  return `${name}: ${value}${end}${comment === undefined ? "" : ` # ${comment}`}`;
}

/** Returns the end of the last line of a block. */
function blockEnd(text: string, node: YAMLMap | YAMLSeq): number {
  const last = node.items.at(-1);
  const [, end] = rangeOf(isPair(last) ? (last.value ?? last.key) : last);
  // The end of a block is already after its last line.
  return lineEnd(text, text[end - 1] === "\n" ? end - 1 : end);
}

function append(
  text: string,
  { node, indent }: Place<YAMLMap | YAMLSeq>,
  lines: readonly string[],
) {
  const end = blockEnd(text, node);
  const added = lines.map((line) => `${lineBreak(text)}${indent}${line}`).join("");
  return text.slice(0, end) + added + text.slice(end);
}

function appendInside(text: string, node: YAMLSeq, lines: readonly string[]): string {
  const end = rangeOf(node)[1] - 1;
  const added = lines.map((line) => line.replace(/^- /, "").trim()).join(" ");
  return `${text.slice(0, end)}${node.items.length > 0 ? ", " : ""}${added}${text.slice(end)}`;
}

/** Changes the lines of a map that has a line for each name. */
function replace(
  text: string,
  { node, indent }: Place<YAMLMap>,
  entries: readonly EditedEntry[],
): string {
  const cuts: { readonly from: number; readonly to: number; readonly text: string }[] = [];
  for (const entry of entries) {
    const pair = node.items.find(({ key }) => nameOf(key) === entry.name);
    if (pair === undefined) {
      const at = blockEnd(text, node);
      const added = `${lineBreak(text)}${indent}${entryText(entry)}`;
      cuts.push({ from: at, to: at, text: added });
      continue;
    }
    const [from] = rangeOf(pair.key);
    const [, valueEnd] = rangeOf(pair.value ?? pair.key);
    // Up to the end of the line: a comment there was about the old value.
    cuts.push({ from, to: lineEnd(text, valueEnd), text: entryText(entry) });
  }
  return cuts
    .toSorted((one, other) => other.from - one.from)
    .reduce((all, cut) => all.slice(0, cut.from) + cut.text + all.slice(cut.to), text);
}

/** Gives each name of a map in braces its own line, to make room for comments. */
function rewrite(
  text: string,
  { node, indent, isItem, isInFlow }: Place<YAMLMap>,
  entries: readonly EditedEntry[],
): string {
  const changed = new Map(entries.map((entry) => [entry.name, entry]));
  const old = node.items.map((pair) => changed.get(nameOf(pair.key) ?? "") ?? kept(text, pair));
  const young = entries.filter(({ name }) => !node.items.some(({ key }) => nameOf(key) === name));
  const all = [...old, ...young];
  const newLine = `${lineBreak(text)}${indent}`;
  const [start, end] = rangeOf(node);
  if (isInFlow) {
    const lines = all.map((entry) => `${newLine}  ${entryText(entry, ",")}`);
    return `${text.slice(0, start)}{${lines.join("")}${newLine}}${text.slice(end)}`;
  }
  const lines = all.map((entry) => entryText(entry)).join(newLine);
  const before = isItem ? text.slice(0, start) : text.slice(0, start).trimEnd() + newLine;
  return before + lines + text.slice(end);
}

function kept(text: string, { key, value }: Pair): EditedEntry {
  const [start, end] = rangeOf(value);
  return { name: text.slice(...rangeOf(key)), value: text.slice(start, end) };
}
