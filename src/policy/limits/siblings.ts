import type { ParsedNode } from "yaml";
import { isPattern, type PathStep } from "../../core/limits/limit.js";
import { quoteText, visibleText } from "../problems/problem.js";
import type { NodeReader } from "../text/node-reader.js";
import { stepLabel } from "./rule-list.js";

/**
 * Maximum number of patterns among the siblings of one key: a request's value is compared to each
 * of them. The keys may contain as many patterns again.
 */
export const patternsPerKeyMax = 1_000;

/** Descriptors of one list, or of several merged lists: refuses duplicates. */
export class Siblings {
  readonly #places = new Map<string, { readonly file: string; readonly line: number }>();
  readonly #patternCounts = new Map<string, number>();

  /** Adds the step of a descriptor that `reader` read at `node`. */
  add(step: PathStep, node: ParsedNode, reader: NodeReader): void {
    const identity = `${step.key.length}:${step.key}${step.value ?? ""}`;
    const { file } = reader.source;
    const known = this.#places.get(identity);
    if (known !== undefined) {
      const where = known.file === file ? "" : ` of ${visibleText(known.file)}`;
      const message = `${quoteText(stepLabel(step))} is already on line ${known.line}${where}`;
      reader.report(node, { id: "HG151", message });
      return;
    }
    this.#places.set(identity, { file, line: reader.source.position(node.range[0]).line });
    if (isPattern(step)) this.#countPattern(step.key.includes("*") ? "*" : step.key, node, reader);
  }

  #countPattern(key: string, node: ParsedNode, reader: NodeReader): void {
    const count = (this.#patternCounts.get(key) ?? 0) + 1;
    this.#patternCounts.set(key, count);
    if (count !== patternsPerKeyMax + 1) return;
    const message = `one key cannot have more than ${patternsPerKeyMax} patterns in the same list`;
    reader.report(node, { id: "HG160", message });
  }
}
