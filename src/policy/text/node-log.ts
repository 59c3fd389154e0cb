import { isAlias, isScalar, type ParsedNode } from "yaml";
import type { Finding, ProblemLog } from "../problems/problem-log.js";
import type { SourceText, TextRange } from "../problems/source-text.js";
import type { AliasTargets, ContentNode } from "./aliases.js";
import { placeInScalar } from "./scalar-place.js";

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
  contentOf(node: ParsedNode): ContentNode | undefined {
    return isAlias(node) ? this.#targets.get(node) : node;
  }

  /** Reports a finding at a node as it is written, be it an alias. */
  report(node: ParsedNode, finding: Finding, range: TextRange = nodeRange(node)): undefined {
    if (this.#isNew(node, finding)) this.#log.report(this.source, range, finding);
    return undefined;
  }

  /** Says that a node is right by the letter, and hardly meant: where its content is written. */
  warn(node: ParsedNode, finding: Finding): void {
    const content = this.contentOf(node) ?? node;
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
    const content = this.contentOf(node);
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
    content: ParsedNode | undefined = this.contentOf(node),
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
