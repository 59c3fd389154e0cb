import {
  Document,
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  Scalar,
  type ScalarTag,
  visit,
  type YAMLMap,
  YAMLSeq,
} from "yaml";
import { assert } from "../../core/base/errors.js";
import { domainForms } from "../limits/domain.js";
import type { PolicyText } from "../parse.js";
import { policyForm } from "../policy-form.js";
import { type ParseProblems, ProblemLog } from "../problems/problem-log.js";
import { SourceText } from "../problems/source-text.js";
import { findAliasTargets } from "../text/aliases.js";
import type { Form, MapForm } from "../text/form.js";
import { readYaml } from "../text/yaml-text.js";
import { restoreComments, stripComments } from "./format-comments.js";

/** Maximum width of a line with a map or list in brackets; wider ones are split into lines. */
export const formattedColumnsMax = 100;

/** A formatted text, or the reasons why it cannot be formatted. */
type FormattedPolicy = { readonly kind: "formatted"; readonly text: string } | ParseProblems;

/**
 * Formats a file of either dialect: names in the order of their shapes, two spaces, and lines that
 * fit. Comments stay with what they precede; texts, numbers and durations stay as written. In a
 * file with aliases, names keep their order, because an anchor must stand above its aliases.
 */
export function formatPolicy(given: PolicyText): FormattedPolicy {
  const log = new ProblemLog();
  const source = new SourceText(given, 0);
  const yaml = readYaml(source, log);
  if (yaml.kind === "unreadable") return { kind: "problems", ...log.found() };
  if (yaml.kind === "empty") return { kind: "formatted", text: source.text };
  if (yaml.hasAliases) findAliasTargets(yaml.node, source, log);
  if (log.count > 0) return { kind: "problems", ...log.found() };
  let text = source.text;
  // A moved part may make room for another, so this repeats until nothing moves.
  for (let round = 0; round < roundsMax; round += 1) {
    const next = formatOnce(text, yaml.hasAliases);
    if (next === text) break;
    text = next;
  }
  assert(
    policyContent(source.text) === policyContent(text),
    "a formatted policy says what it said before",
  );
  return { kind: "formatted", text };
}

/**
 * Returns the content of a policy's text, regardless of comments and the order of names. Content
 * from aliases must be bounded, as it is in a text that was read.
 */
export function policyContent(text: string): string {
  const value: unknown = parseTypeless(text).toJS({ maxAliasCount: -1 });
  return JSON.stringify(value, (_, part: unknown) => {
    const isMap = typeof part === "object" && part !== null && !Array.isArray(part);
    if (!isMap) return part;
    return Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** Maximum number of rounds. Two are enough for all known texts. */
const roundsMax = 8;

function formatOnce(text: string, hasAliases: boolean): string {
  const bare = stripComments(text);
  const document = parseTypeless(bare.text);
  restoreComments(document, bare, text);
  const { contents } = document;
  assert(contents !== null, "a text that was read has a tree");
  if (!hasAliases) order(contents, { kind: "map", map: () => formOf(contents) });
  if (isCollection(contents)) contents.flow = false;
  spread(contents, 0, new LineProbe());
  return document.toString({
    lineWidth: formattedColumnsMax,
    minContentWidth: 20,
    flowCollectionPadding: false,
  });
}

/** Parses without types: text that looks like a number stays as written. */
function parseTypeless(text: string): Document.Parsed {
  return parseDocument(text, {
    schema: "failsafe",
    customTags: [emptyTag],
    merge: false,
    resolveKnownTags: false,
    uniqueKeys: false,
    strict: true,
    logLevel: "silent",
  });
}

/** Returns the form of a policy file, by its names, or else of envoyproxy/ratelimit. */
function formOf(root: Node): MapForm {
  const isPolicy = isMap(root) && policyForm.shape.names.some((name) => root.has(name));
  return isPolicy ? policyForm : domainForms.ratelimit;
}

/** An absent value is not an empty text, even in a schema without types. */
const emptyTag: ScalarTag = {
  tag: "tag:yaml.org,2002:null",
  default: true,
  test: /^$/,
  identify: (value) => value === null,
  resolve: () => new Scalar(null),
  stringify: () => "",
};

/** Puts the names of maps in the order of their shapes. */
function order(node: unknown, form: Form): void {
  if (form.kind === "any") {
    for (const each of form.of) order(node, each);
  } else if (form.kind === "list" && isSeq(node)) {
    for (const item of node.items) {
      order(item, form.item);
      leadItem(item);
    }
  } else if (form.kind === "texts" && isMap(node)) {
    for (const { value } of node.items) order(value, form.value);
  } else if (form.kind === "map" && isMap(node)) {
    const map = form.map();
    sortNames(node, map.shape.names);
    for (const pair of node.items) {
      const row = map.rows[nameOf(pair)];
      if (row !== undefined) order(pair.value, row.form);
    }
  }
}

/** Moves the comment of an item's first name before the item: it has no room after a dash. */
function leadItem(item: unknown): void {
  const key = isMap(item) ? item.items[0]?.key : undefined;
  if (!isMap(item) || !isScalar(key) || !key.commentBefore) return;
  const { commentBefore } = key;
  item.commentBefore = item.commentBefore
    ? `${item.commentBefore}\n${commentBefore}`
    : commentBefore;
  delete key.commentBefore;
}

function nameOf({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : "";
}

/** Sorts names. Unknown names come last, in their present order. */
function sortNames(map: YAMLMap, names: readonly string[]): void {
  const rank = (pair: Pair): number => {
    const index = names.indexOf(nameOf(pair));
    return index === -1 ? names.length : index;
  };
  const sorted = map.items.toSorted((a, b) => rank(a) - rank(b));
  const [first] = sorted;
  if (isScalar(first?.key)) first.key.spaceBefore = false;
  map.items = sorted;
}

/** Splits maps and lists that do not fit into a line, or contain comments, into lines. */
function spread(node: unknown, indent: number, probe: LineProbe): void {
  if (!isCollection(node)) return;
  for (const item of node.items) {
    const value = isPair(item) ? item.value : item;
    const lead = isPair(item) ? keyWidth(item) : 0;
    const inner = indent + (isSeq(node) ? 2 : 0);
    if (isCollection(value) && value.flow === true) {
      const isFitting =
        !hasComment(value) && inner + lead + probe.widthOf(value) <= formattedColumnsMax;
      value.flow = isFitting || value.items.length === 0;
      if (value.flow === false) leadWithComment(item, value);
    }
    if (isCollection(value) && value.flow !== true) {
      spread(value, isSeq(node) || isSeq(value) ? inner : indent + 2, probe);
    }
  }
}

/** Moves a comment after the value before it: after several lines, it would belong to the last. */
function leadWithComment(item: unknown, value: YAMLMap | YAMLSeq): void {
  const lead = isPair(item) ? item.key : value;
  const { comment } = value;
  if (!comment || !(isScalar(lead) || isCollection(lead))) return;
  lead.commentBefore = lead.commentBefore ? `${lead.commentBefore}\n${comment}` : comment;
  delete value.comment;
}

function keyWidth({ key }: Pair): number {
  return isScalar(key) ? String(key.source ?? key.value).length + 2 : formattedColumnsMax;
}

/** Reports whether there are comments inside the braces or brackets, not only after them. */
function hasComment(node: Node): boolean {
  let found = false;
  visit(node, (_, each) => {
    if (isCollection(each) || isScalar(each) || isAlias(each)) {
      found ||= (each !== node && Boolean(each.comment)) || Boolean(each.commentBefore);
    }
  });
  return found;
}

/** Measures the width of a map or list on one line. */
class LineProbe {
  readonly #list = new YAMLSeq<Node>();
  /** Created once: a document costs more than writing it. */
  readonly #document = new Document(this.#list, { schema: "failsafe", customTags: [emptyTag] });

  constructor() {
    this.#list.flow = true;
  }

  /** Includes the outer list's brackets: two columns that the library counts, too. */
  widthOf(node: Node): number {
    this.#list.items = [node];
    const text = this.#document.toString({
      lineWidth: 0,
      flowCollectionPadding: false,
      verifyAliasOrder: false,
    });
    return text.trimEnd().length;
  }
}
