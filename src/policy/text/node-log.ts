import { isAlias, isScalar, type ParsedNode, Scalar } from "yaml";
import type { Finding, ProblemLog } from "../problems/problem-log.js";
import type { SourceText, TextRange } from "../problems/source-text.js";
import type { AliasTargets, ContentNode } from "./aliases.js";

/** Reports what is wrong with the nodes of one file: at each place the same thing once. */
export class NodeLog {
  readonly source: SourceText;
  readonly #log: ProblemLog;
  readonly #targets: AliasTargets;
  /** Places and findings so far. */
  readonly #reported = new Set<string>();

  constructor(source: SourceText, log: ProblemLog, targets: AliasTargets) {
    this.source = source;
    this.#log = log;
    this.#targets = targets;
  }

  /** What a node stands for; undefined for an alias that names nothing, which is reported. */
  contentAt(node: ParsedNode): ContentNode | undefined {
    return isAlias(node) ? this.#targets.get(node) : node;
  }

  /** Reports a finding at a node as it is written, be it an alias. */
  report(node: ParsedNode, finding: Finding, range: TextRange = nodeRange(node)): undefined {
    if (this.#isNew(node, finding)) this.#log.report(this.source, range, finding);
    return undefined;
  }

  /** Says that a node is right by the letter, and hardly meant: where its content is written. */
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

  /** Reports a finding about a part of a scalar's value, as far as it can be found in the text. */
  reportPart(node: ParsedNode, part: TextRange, finding: Finding): undefined {
    const content = this.contentAt(node);
    if (content !== node || !isScalar(content)) return this.reportContent(node, finding);
    return this.report(node, finding, placeInScalar(this.source.text, content, part));
  }

  /**
   * Reports that a node as a whole is not what it should be. What an alias names may be right in
   * its own place: then the alias is wrong. If it is wrong there too, it is told there only; so it
   * is with a part of what it names, when `content` is given.
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

/** A scalar as a whole; of a map or list, which may be many lines long, its first character. */
function nodeRange(node: ParsedNode): TextRange {
  const [start, end] = node.range;
  return { start, end: isScalar(node) || isAlias(node) ? end : start + 1 };
}

/**
 * Where a part of a scalar's value stands in the file's text, so that a caret can show it. Known
 * for scalars whose characters stand in the text as they are: plain and single-quoted ones of one
 * line, double-quoted ones without escapes, and block scalars (`|`). Of others it is the whole
 * scalar.
 *
 * @param text the file's text
 * @param part of the value, in UTF-16 units; one that is empty marks the character after it
 */
export function placeInScalar(text: string, node: Scalar.Parsed, part: TextRange): TextRange {
  const [start, end] = node.range;
  const places = placesOf(text.slice(start, end), node);
  const from = places?.[part.start];
  if (places === undefined || from === undefined) return { start, end };
  const last = places[Math.max(part.start, part.end - 1)] ?? from;
  return { start: start + from, end: start + last + 1 };
}

/** The offset of each character of the value within the scalar's text, and of what follows. */
function placesOf(written: string, { type, value }: Scalar.Parsed): readonly number[] | undefined {
  if (typeof value !== "string") return undefined;
  const places = findPlaces(written, type, value);
  // What the characters say must be what they mean; anything else is shown as a whole.
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

/** A quote in it is written twice. */
function singleQuotedPlaces(written: string, value: string): readonly number[] {
  const places = [1];
  for (const character of value.split("")) {
    const last = places[places.length - 1] ?? 0;
    places.push(last + (character === "'" && written[last + 1] === "'" ? 2 : 1));
  }
  return places;
}

/**
 * Lines of the value are lines of the text behind the header, each after the indentation that is
 * not part of it: of `|2` lines some of the spaces are.
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
