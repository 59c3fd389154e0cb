import { isNode, LineCounter, parseAllDocuments, type Document as YamlDocument } from "yaml";
import { visibleText } from "../../policy/problems/problem.js";
import type { CheckProblem, JsonPath } from "../base/check-problem.js";
import type { Document, DocumentKind, Tree } from "../base/document.js";
import { rated } from "../base/generate-problems.js";
import { isPlainMap, type PlainMap } from "../base/plain-tree.js";
import { readPlain } from "../base/plain-yaml.js";
import { checkDocument } from "./check-documents.js";
import type { EnvoyApi } from "./envoy-api.js";
import { bootstrapMessage } from "./find-messages.js";

/** Maximum length of a text that is checked, in UTF-16 units. */
export const checkedCharsMax = 16_777_216;

/** A problem in a text, and its place. */
export interface TextProblem extends CheckProblem {
  /** 1-based. */
  readonly line: number;
  /** 1-based, in UTF-16 units. */
  readonly column: number;
}

/**
 * Checks configuration that a person supplies in YAML or JSON: an Envoy bootstrap, or Kubernetes
 * objects with patches for it. Problems are in the order of their places.
 */
export function checkText(text: string, api: EnvoyApi): readonly TextProblem[] {
  if (text.length > checkedCharsMax) {
    return [textProblem("the text is too long", `at most ${checkedCharsMax} characters`)];
  }
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, {
    lineCounter: lines,
    logLevel: "silent",
    prettyErrors: false,
    merge: true,
  });
  const documents: readonly YamlDocument.Parsed[] = Array.from(parsed);
  const problems = documents.flatMap((document) => checkYaml(document, { lines, api }));
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
}

/** Returns the documents of a text as plain data. Empty if unreadable, which a check reports. */
export function readDocuments(text: string): readonly PlainMap[] {
  if (text.length > checkedCharsMax) return [];
  const parsed = parseAllDocuments(text, { logLevel: "silent", prettyErrors: false, merge: true });
  return Array.from(parsed).flatMap((document) => {
    const read = document.errors.length > 0 ? undefined : readPlain(document);
    const tree = read?.kind === "read" ? read.tree : undefined;
    return isPlainMap(tree) ? [tree] : [];
  });
}

function checkYaml(
  document: YamlDocument.Parsed,
  { lines, api }: { readonly lines: LineCounter; readonly api: EnvoyApi },
): readonly TextProblem[] {
  const [error] = document.errors;
  const at = (offset: number): { readonly line: number; readonly column: number } => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  if (error !== undefined) {
    const problem = textProblem(visibleText(error.message), "write valid YAML");
    return [{ ...problem, ...at(error.pos[0]) }];
  }
  const read = readPlain(document);
  if (read.kind === "unreadable")
    return [textProblem(read.why, "write the values out instead of aliases")];
  if (read.tree === undefined) return [];
  const kind = kindOf(read.tree);
  const checked: Document = { path: "", kind, parts: [read.tree], title: "" };
  return checkDocument(checked, { api }).map((problem) => {
    return { ...problem, ...at(offsetOf(document, problem.path)) };
  });
}

/** Kubernetes objects are recognized by `apiVersion` and `kind`. */
function kindOf(tree: Tree): DocumentKind {
  const isObject = typeof tree === "object" && "apiVersion" in tree && "kind" in tree;
  if (isObject) return { format: "yaml", is: "kubernetes" };
  return { format: "yaml", is: "envoy", message: bootstrapMessage };
}

/** Returns the offset of the value at a path, or of its nearest parent that exists. */
function offsetOf(document: YamlDocument.Parsed, path: JsonPath): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node: unknown =
      length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return 0;
}

function textProblem(message: string, hint: string): TextProblem {
  return { ...rated({ id: "HG451", path: [], message, hint }), line: 1, column: 1 };
}
