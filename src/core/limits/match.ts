import { type Glob, globMatches, parseGlob } from "../collections/glob.js";
import type { DescriptorEntry } from "./key.js";
import { isPattern, type PathStep, type Rule } from "./limit.js";

/** A place in the tree, reached by the entries of a descriptor so far. */
interface Node {
  rule: Rule | undefined;
  readonly childrenByKey: Map<string, Children>;
  /** Steps with a `*` in their key, in file order: nearly always none. */
  readonly keyPatterns: Patterns;
}

/** What hangs below a node for one entry key. */
interface Children {
  readonly byValue: Map<string, Node>;
  /** Values with a `*`, in file order. */
  readonly patterns: Patterns;
  /** The key alone: any value. */
  anyValue: Node | undefined;
}

/** A node behind a pattern, which is split once, here, and not for every request. */
interface PatternNode extends Node {
  /** Counts the patterns of a tree in file order. */
  readonly order: number;
  readonly keyGlob: Glob;
  /** Absent: any value. */
  readonly valueGlob: Glob | undefined;
}

/** By the step's text. */
type Patterns = Map<string, PatternNode>;

/**
 * The rules of one domain as a tree of descriptor entries.
 *
 * At each level the exact key and value win, then the first pattern in file order, be it in key or
 * value, then the key alone; there is no way back up. Key and value are compared apart: `a_b: c`
 * never passes for `a: b_c`, and a `*` in the one reaches nothing of the other.
 *
 * Source: envoyproxy/ratelimit, "Descriptor list definition" of its README; it compares key and
 * value as one text, joined by `_`.
 */
export class DescriptorTree {
  readonly #root: Node = createNode();
  #patternCount = 0;

  /** Adds a rule at its path; rules arrive in file order, which is the order of patterns. */
  insert(rule: Rule): void {
    let node = this.#root;
    for (const step of rule.path) node = this.#childFor(node, step);
    node.rule = rule;
  }

  /**
   * The rule that a descriptor meets: the one whose path is as long as the descriptor's entries.
   * Undefined when the path leads nowhere, or when the descriptor ends or goes on elsewhere.
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

/** The first pattern that an entry matches, if it stands before the place `before`. */
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
