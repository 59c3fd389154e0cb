import { type Glob, globMatches, parseGlob } from "../collections/glob.js";
import type { DescriptorEntry } from "./key.js";
import { isPattern, type PathStep, type Rule } from "./limit.js";

/** A node of the tree, reached by the entries of a descriptor so far. */
interface Node {
  rule: Rule | undefined;
  readonly childrenByKey: Map<string, Children>;
  /** Steps with a `*` in their key, in file order. Nearly always empty. */
  readonly keyPatterns: Patterns;
}

/** The children of a node for one entry key. */
interface Children {
  readonly byValue: Map<string, Node>;
  /** Values with a `*`, in file order. */
  readonly patterns: Patterns;
  /** The key without a value: any value. */
  anyValue: Node | undefined;
}

/** A node for a pattern, which is parsed once when it is added. */
interface PatternNode extends Node {
  /** The index of the pattern in file order. */
  readonly order: number;
  readonly keyGlob: Glob;
  /** Absent: any value. */
  readonly valueGlob: Glob | undefined;
}

/** By the text of the step. */
type Patterns = Map<string, PatternNode>;

/**
 * The rules of one domain as a tree of descriptor entries.
 *
 * At each level, the exact key and value have precedence, then the first pattern in file order, in
 * the key or the value, then the key alone. There is no backtracking. Key and value are compared
 * separately: `a_b: c` does not match `a: b_c`, and a `*` in one does not extend into the other.
 *
 * Source: envoyproxy/ratelimit, "Descriptor list definition" of its README, which compares key and
 * value as one text, joined by `_`.
 */
export class DescriptorTree {
  readonly #root: Node = createNode();
  #patternCount = 0;

  /** Adds a rule at its path. The order of calls is the precedence of patterns. */
  insert(rule: Rule): void {
    let node = this.#root;
    for (const step of rule.path) node = this.#childFor(node, step);
    node.rule = rule;
  }

  /**
   * Returns the rule that a descriptor matches: the one whose path has as many steps as the
   * descriptor has entries. Undefined if there is none.
   */
  match(entries: readonly DescriptorEntry[]): Rule | undefined {
    let node: Node | undefined = this.#root;
    for (const entry of entries) {
      node = findChild(node, entry);
      if (node === undefined) return undefined;
    }
    return node.rule;
  }

  #childFor(node: Node, step: PathStep): Node {
    if (step.key.includes("*")) return this.#patternChild(node.keyPatterns, step);
    const known = node.childrenByKey.get(step.key);
    const children: Children = known ?? {
      byValue: new Map(),
      patterns: new Map(),
      anyValue: undefined,
    };
    if (known === undefined) node.childrenByKey.set(step.key, children);
    if (step.value === undefined) {
      children.anyValue ??= createNode();
      return children.anyValue;
    }
    return isPattern(step)
      ? this.#patternChild(children.patterns, step)
      : valueChild(children, step.value);
  }

  #patternChild(patterns: Patterns, step: PathStep): PatternNode {
    const value = step.value === undefined ? "" : `=${step.value}`;
    const identity = `${step.key.length}:${step.key}${value}`;
    const known = patterns.get(identity);
    if (known !== undefined) return known;
    const child: PatternNode = {
      ...createNode(),
      order: this.#patternCount,
      keyGlob: parseGlob(step.key),
      valueGlob: step.value === undefined ? undefined : parseGlob(step.value),
    };
    this.#patternCount += 1;
    patterns.set(identity, child);
    return child;
  }
}

function createNode(): Node {
  return { rule: undefined, childrenByKey: new Map(), keyPatterns: new Map() };
}

function valueChild({ byValue }: Children, value: string): Node {
  const child = byValue.get(value) ?? createNode();
  byValue.set(value, child);
  return child;
}

function findChild(node: Node, entry: DescriptorEntry): Node | undefined {
  const children = node.childrenByKey.get(entry.key);
  const exact = children?.byValue.get(entry.value);
  if (exact !== undefined) return exact;
  const byValue = children && findPattern(children.patterns, entry, Number.POSITIVE_INFINITY);
  const byKey = findPattern(node.keyPatterns, entry, byValue?.order ?? Number.POSITIVE_INFINITY);
  return byKey ?? byValue ?? children?.anyValue;
}

/** Returns the first pattern that matches an entry, if its order is below `before`. */
function findPattern(
  patterns: Patterns,
  { key, value }: DescriptorEntry,
  before: number,
): PatternNode | undefined {
  for (const pattern of patterns.values()) {
    if (pattern.order > before) return undefined;
    if (!globMatches(pattern.keyGlob, key)) continue;
    if (pattern.valueGlob === undefined || globMatches(pattern.valueGlob, value)) return pattern;
  }
  return undefined;
}
