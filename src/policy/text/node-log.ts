import { isAlias, isScalar, type ParsedNode, Scalar } from "yaml";
import type { Finding, ProblemLog } from "../problems/problem-log.js";
import type { SourceText, TextRange } from "../problems/source-text.js";
import type { AliasTargets, ContentNode } from "./aliases.js";

/** Reports the problems of one file's nodes. Each problem is reported once per place. */
export class NodeLog {
  readonly source: SourceText;
  readonly #log: ProblemLog;
  readonly #targets: AliasTargets;
  /** Places and findings reported so far. */
  readonly #reported = new Set<string>();

  constructor(source: SourceText, log: ProblemLog, targets: AliasTargets) {
    this.source = source;
    this.#log = log;
    this.#targets = targets;
  }

  /** Returns a node, or the target of an alias; undefined if the alias names nothing (reported). */
  contentAt(node: ParsedNode): ContentNode | undefined {
    return isAlias(node) ? this.#targets.get(node) : node;
  }

  /** Reports a finding at a node as it is written, even if it is an alias. */
  report(node: ParsedNode, finding: Finding, range: TextRange = nodeRange(node)): undefined {
    if (this.#isNew(node, finding)) this.#log.report(this.source, range, finding);
    return undefined;
  }

  /** Warns that a valid node is probably a mistake, at the place where its content is written. */
  warn(node: ParsedNode, finding: Finding): void {
    const content = this.contentAt(node) ?? node;
    if (!this.#isNew(content, finding)) return;
    this.#log.warnings.report(this.source, nodeRange(content), finding);
  }

  #isNew(node: ParsedNode, finding: Finding): boolean {
    // Without aliases nothing is read twice.
    if (this.#targets.size === 0) return true;
    const key = keyOf(node, finding);
    if (this.#reported.has(key)) return false;
    this.#reported.add(key);
    return true;
  }

  /** Reports a finding about a part of a scalar's value, at its place in the text if known. */
  reportPart(node: ParsedNode, part: TextRange, finding: Finding): undefined {
    const content = this.contentAt(node);
    if (content !== node || !isScalar(content)) return this.reportContent(node, finding);
    return this.report(node, finding, placeInScalar(this.source.text, content, part));
  }

  /**
   * Reports that a node as a whole is wrong. The target of an alias may be right in its own place:
   * then the alias is wrong. If the target is wrong there too, only the target is reported. The
   * same applies to a part of the target, if `content` is given.
   */
  reportContent(
    node: ParsedNode,
    finding: Finding,
    content: ParsedNode | undefined = this.contentAt(node),
  ): undefined {
    if (content !== undefined && this.#reported.has(keyOf(content, finding))) return undefined;
    return this.report(node, finding);
  }
}

function keyOf(node: ParsedNode, { id, message, expected }: Finding): string {
  return `${node.range[0]} ${id} ${message} ${expected}`;
}

/** Returns the range of a scalar, or the first character of a map or list, which may be long. */
function nodeRange(node: ParsedNode): TextRange {
  const [start, end] = node.range;
  return { start, end: isScalar(node) || isAlias(node) ? end : start + 1 };
}

/**
 * Locates a part of a scalar's value in the file's text, so that a caret can show it. It works for
 * scalars whose characters stand unchanged in the text: plain and single-quoted ones of one line,
 * double-quoted ones without escapes, and block scalars (`|`). For others it returns the whole
 * scalar.
 *
 * @param text the file's text
 * @param part of the value, in UTF-16 units; an empty one marks the character after it
 */
export function placeInScalar(text: string, node: Scalar.Parsed, part: TextRange): TextRange {
  const [start, end] = node.range;
  const places = placesOf(text.slice(start, end), node);
  const from = places?.[part.start];
  if (places === undefined || from === undefined) return { start, end };
  const last = places[Math.max(part.start, part.end - 1)] ?? from;
  return { start: start + from, end: start + last + 1 };
}

/** Returns the offset of each character of the value in the scalar's text, and of the end. */
function placesOf(written: string, { type, value }: Scalar.Parsed): readonly number[] | undefined {
  if (typeof value !== "string") return undefined;
  const places = findPlaces(written, type, value);
  // The written characters must equal those of the value; otherwise the whole scalar is shown.
  const isSame = places?.every((place, i) => i === value.length || written[place] === value[i]);
  return isSame === true && places?.length === value.length + 1 ? places : undefined;
}

function findPlaces(
  written: string,
  type: Scalar.Parsed["type"],
  value: string,
): readonly number[] | undefined {
  if (type === Scalar.PLAIN) return Array.from({ length: value.length + 1 }, (_, i) => i);
  if (type === Scalar.QUOTE_DOUBLE)
    return Array.from({ length: value.length + 1 }, (_, i) => i + 1);
  if (type === Scalar.QUOTE_SINGLE) return singleQuotedPlaces(written, value);
  return type === Scalar.BLOCK_LITERAL ? literalPlaces(written, value) : undefined;
}

/** In a single-quoted scalar, a quote is written twice. */
function singleQuotedPlaces(written: string, value: string): readonly number[] {
  const places = [1];
  for (const character of value.split("")) {
    const last = places[places.length - 1] ?? 0;
    places.push(last + (character === "'" && written[last + 1] === "'" ? 2 : 1));
  }
  return places;
}

/**
 * Each line of the value is a line of the text after the header, without its indentation. With
 * `|2`, some of the leading spaces belong to the value.
 */
function literalPlaces(written: string, value: string): readonly number[] {
  const lines = value.split("\n");
  const writtenIndent = /\n( *)[^\s]/.exec(written)?.[1]?.length ?? 0;
  const valueIndent = lines.find((line) => line.trim() !== "")?.search(/[^ ]/) ?? 0;
  const indent = writtenIndent - valueIndent;
  const places: number[] = [];
  let lineStart = written.indexOf("\n") + 1;
  for (const line of lines) {
    const first = line === "" ? lineStart : lineStart + indent;
    for (let i = 0; i <= line.length; i += 1) places.push(first + i);
    lineStart = written.indexOf("\n", lineStart) + 1;
  }
  return places;
}
