import { type Alias, isAlias, isCollection, isMap, isScalar, type ParsedNode } from "yaml";
import { quoteText } from "../problems/problem.js";
import type { ProblemLog } from "../problems/problem-log.js";
import type { SourceText, TextRange } from "../problems/source-text.js";
import { nestingFinding, nestingMax } from "./yaml-text.js";

/**
 * Maximum number of names, values, maps and lists of one file that are read through aliases. They
 * cost as much as written ones: this is about ten thousand limits, or 1 MB of text.
 */
export const aliasedNodesMax = 100_000;

/** A node that is not an alias. */
export type ContentNode = Exclude<ParsedNode, Alias.Parsed>;

/** Target of each alias of a file. An alias without a target is reported and left out. */
export type AliasTargets = ReadonlyMap<Alias.Parsed, ContentNode>;

/**
 * Finds the target of each alias of a tree: the nearest node above it that has the anchor and ends
 * before the alias. So no node contains itself, and the cost of an alias is known without expanding
 * it. Aliases without a target, or used as names, are reported and left out. Returns undefined, and
 * reports it, if a bound is reached: the file must not be read then.
 */
export function findAliasTargets(
  root: ParsedNode,
  source: SourceText,
  log: ProblemLog,
): AliasTargets | undefined {
  const finder = new TargetFinder(source, log);
  // The document is the first level, as in the code that splits the text.
  finder.visit(root, 1);
  return finder.isOverBound ? undefined : finder.targets;
}

/** Size of a node, with the targets of its aliases in their places. */
interface Extent {
  readonly nodeCount: number;
  /** Depth of nested maps and lists, from 0 for a single value. */
  readonly height: number;
}

const singleExtent: Extent = { nodeCount: 1, height: 0 };

/** A node that has an anchor. Its extent is undefined until the node ends. */
interface Anchored {
  readonly node: ContentNode;
  extent: Extent | undefined;
}

/** Walks a tree in text order. It may recurse, because the text's depth is bounded before. */
class TargetFinder {
  readonly targets = new Map<Alias.Parsed, ContentNode>();
  readonly #source: SourceText;
  readonly #log: ProblemLog;
  /** The latest node of each anchor name. */
  readonly #anchors = new Map<string, Anchored>();
  #aliasedNodeCount = 0;
  #isOverBound = false;

  constructor(source: SourceText, log: ProblemLog) {
    this.#source = source;
    this.#log = log;
  }

  get isOverBound(): boolean {
    return this.#isOverBound;
  }

  /** `depth` counts the levels that contain the node. */
  visit(node: ParsedNode, depth: number): Extent {
    if (isAlias(node)) return this.#visitAlias(node, depth);
    const anchored: Anchored = { node, extent: undefined };
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, anchored);
    anchored.extent = isScalar(node) ? singleExtent : this.#visitItems(node, depth + 1);
    return anchored.extent;
  }

  #visitItems(node: ContentNode, depth: number): Extent {
    let nodeCount = 1;
    let height = 0;
    const add = (child: ParsedNode): void => {
      const extent = this.visit(child, depth);
      nodeCount += extent.nodeCount;
      height = Math.max(height, extent.height);
    };
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        if (isAlias(key)) this.#refuseName(key);
        else add(key);
        if (value !== null) add(value);
      }
    } else if (isCollection(node)) {
      for (const item of node.items) add(item);
    }
    return { nodeCount, height: height + 1 };
  }

  #visitAlias(alias: Alias.Parsed, depth: number): Extent {
    if (this.#isOverBound) return singleExtent;
    const found = this.#anchors.get(alias.source);
    if (found?.extent === undefined) {
      this.#refuseUnresolved(alias, found);
      return singleExtent;
    }
    const { node, extent } = found;
    this.targets.set(alias, node);
    this.#aliasedNodeCount += extent.nodeCount;
    if (depth + extent.height > nestingMax) {
      this.#isOverBound = true;
      this.#log.report(this.#source, rangeOf(alias), nestingFinding);
    } else if (this.#aliasedNodeCount > aliasedNodesMax) {
      this.#isOverBound = true;
      this.#log.report(this.#source, rangeOf(alias), {
        id: "HG113",
        message: "the file's aliases expand to too much, up to this one",
        expected: `at most ${aliasedNodesMax} keys, values, maps and lists through aliases`,
      });
    }
    return extent;
  }

  #refuseUnresolved(alias: Alias.Parsed, found: Anchored | undefined): void {
    const name = quoteText(alias.source);
    this.#log.report(this.#source, rangeOf(alias), {
      id: "HG112",
      message:
        found === undefined
          ? `no anchor above is named ${name}`
          : `this alias is inside the part with the anchor ${name}`,
      expected:
        "the name of an anchor that ends above, or quotes around a text that starts with `*`",
    });
  }

  #refuseName(key: Alias.Parsed): void {
    this.#log.report(this.#source, rangeOf(key), {
      id: "HG104",
      message: "an alias cannot be used as a key",
      expected: "the key written out",
    });
  }
}

function rangeOf(alias: Alias.Parsed): TextRange {
  return { start: alias.range[0], end: alias.range[1] };
}
