import { type Glob, globMatches, parseGlob } from "./glob.js";
import type { DescriptorEntry } from "./key.js";
import type { PathStep, Rule } from "./limit.js";

/** A place in the tree, reached by the entries of a descriptor so far. */
interface Node {
  rule: Rule | undefined;
  readonly childrenByKey: Map<string, Children>;
}

/** What hangs below a node for one entry key. */
interface Children {
  readonly byValue: Map<string, Node>;
  /** Values with a `*`, in file order. */
  readonly byPattern: Map<string, PatternNode>;
  /** The key alone: any value. */
  anyValue: Node | undefined;
}

/** A node behind a pattern, which is split once, here, and not for every request. */
interface PatternNode extends Node {
  readonly glob: Glob;
}

/**
 * The rules of one domain as a tree of descriptor entries.
 *
 * At each level the exact value wins, then the first pattern in file order, then the key alone;
 * there is no way back up. Key and value are compared apart, so `a_b: c` never passes for `a: b_c`.
 *
 * Source: envoyproxy/ratelimit, "Descriptor list definition" of its README.
 */
export class DescriptorTree {
  readonly #root: Node = createNode();

  /** Adds a rule at its path; rules arrive in file order, which is the order of patterns. */
  insert(rule: Rule): void {
    let node = this.#root;
    for (const step of rule.path) node = childFor(node, step);
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
}

function createNode(): Node {
  return { rule: undefined, childrenByKey: new Map() };
}

function childFor(node: Node, step: PathStep): Node {
  const known = node.childrenByKey.get(step.key);
  const children: Children = known ?? {
    byValue: new Map(),
    byPattern: new Map(),
    anyValue: undefined,
  };
  if (known === undefined) node.childrenByKey.set(step.key, children);
  if (step.value === undefined) {
    children.anyValue ??= createNode();
    return children.anyValue;
  }
  return step.value.includes("*")
    ? patternChild(children, step.value)
    : valueChild(children, step.value);
}

function valueChild({ byValue }: Children, value: string): Node {
  const child = byValue.get(value) ?? createNode();
  byValue.set(value, child);
  return child;
}

function patternChild({ byPattern }: Children, pattern: string): PatternNode {
  const child = byPattern.get(pattern) ?? { ...createNode(), glob: parseGlob(pattern) };
  byPattern.set(pattern, child);
  return child;
}

function findChild(node: Node, entry: DescriptorEntry): Node | undefined {
  const children = node.childrenByKey.get(entry.key);
  if (children === undefined) return undefined;
  const exact = children.byValue.get(entry.value);
  if (exact !== undefined) return exact;
  for (const child of children.byPattern.values()) {
    if (globMatches(child.glob, entry.value)) return child;
  }
  return children.anyValue;
}
