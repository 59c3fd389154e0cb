import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { globMatches, parseGlob } from "../../../../src/core/collections/glob.js";
import type { DescriptorEntry } from "../../../../src/core/limits/key.js";
import { isPattern, type PathStep, type Rule } from "../../../../src/core/limits/limit.js";
import { DescriptorTree } from "../../../../src/core/limits/match.js";
import { propertyRuns } from "../../../support/seeds.js";

/** `a=x` as a step or an entry; `a` as a step for any value. */
function stepOf(text: string): PathStep {
  const [key = "", value] = text.split("=");
  return value === undefined ? { key } : { key, value };
}

function pathOf(text: string): readonly PathStep[] {
  return text.split(" ").map(stepOf);
}

function entriesOf(text: string): readonly DescriptorEntry[] {
  return pathOf(text).map(({ key, value = "" }) => ({ key, value }));
}

function ruleOf(path: readonly PathStep[], index: number): Rule {
  return { domain: "d", path, effect: { kind: "none" }, label: `rule ${index}`, index };
}

function treeOf(rules: readonly Rule[]): DescriptorTree {
  const tree = new DescriptorTree();
  for (const rule of rules) tree.insert(rule);
  return tree;
}

/** The rule met in a tree of paths like `a=x b`, as its path; undefined for none. */
function met(paths: readonly string[], entries: string): string | undefined {
  const rule = treeOf(paths.map((path, i) => ruleOf(pathOf(path), i))).match(entriesOf(entries));
  return rule === undefined ? undefined : paths[rule.index];
}

/**
 * The definition over a flat list: at each level all rules that begin with the steps chosen so far
 * offer their next step, and the best offer is chosen for good.
 */
function matchFlat(rules: readonly Rule[], entries: readonly DescriptorEntry[]): Rule | undefined {
  let left = rules;
  for (const [depth, entry] of entries.entries()) {
    const offers = left.flatMap(({ path }) => path[depth] ?? []);
    const step = bestStep(offers, entry);
    if (step === undefined) return undefined;
    left = left.filter(({ path }) => {
      const next = path[depth];
      return next !== undefined && next.key === step.key && next.value === step.value;
    });
  }
  return left.find(({ path }) => path.length === entries.length);
}

function bestStep(offers: readonly PathStep[], entry: DescriptorEntry): PathStep | undefined {
  const isExact = ({ key, value }: PathStep) => key === entry.key && value === entry.value;
  const isMatch = ({ key, value }: PathStep) =>
    globMatches(parseGlob(key), entry.key) &&
    (value === undefined || globMatches(parseGlob(value), entry.value));
  return (
    offers.find((step) => !isPattern(step) && isExact(step)) ??
    offers.find((step) => isPattern(step) && isMatch(step)) ??
    offers.find(({ key, value }) => key === entry.key && value === undefined)
  );
}

const tieBreakers = ["a", "a=x*", "a=xy*", "a=*", "a=xyz"];

describe("DescriptorTree", () => {
  it.each([
    {
      name: "the exact value wins, last in the file",
      paths: tieBreakers,
      entries: "a=xyz",
      want: "a=xyz",
    },
    {
      name: "the first pattern wins, not the longest",
      paths: tieBreakers,
      entries: "a=xyy",
      want: "a=x*",
    },
    {
      name: "a later pattern where the first fails",
      paths: tieBreakers,
      entries: "a=y",
      want: "a=*",
    },
    { name: "the key alone is last", paths: ["a", "a=x*"], entries: "a=y", want: "a" },
    { name: "the key alone takes an empty value", paths: ["a"], entries: "a=", want: "a" },
    { name: "another key is no match", paths: tieBreakers, entries: "b=xyz", want: undefined },
    {
      name: "a value that holds a star meets a pattern",
      paths: ["a=x*"],
      entries: "a=x*",
      want: "a=x*",
    },
    { name: "the whole depth is needed", paths: ["a b"], entries: "a=1", want: undefined },
    { name: "no deeper than the path", paths: ["a"], entries: "a=1 b=2", want: undefined },
    { name: "parent and child are two rules", paths: ["a", "a b"], entries: "a=1", want: "a" },
    {
      name: "parent and child are two rules, below",
      paths: ["a", "a b"],
      entries: "a=1 b=2",
      want: "a b",
    },
    {
      name: "no way back up from an exact value",
      paths: ["a b", "a=x c"],
      entries: "a=x b=1",
      want: undefined,
    },
    {
      name: "no way back up from a pattern",
      paths: ["a b", "a=* c"],
      entries: "a=x b=1",
      want: undefined,
    },
    {
      name: "no way back to a second pattern",
      paths: ["a=x* b", "a=*y c"],
      entries: "a=xy c=1",
      want: undefined,
    },
    { name: "the order of entries counts", paths: ["a b"], entries: "b=1 a=2", want: undefined },
    { name: "key and value are apart", paths: ["a=b_c"], entries: "a_b=c", want: undefined },
    {
      name: "key and value are apart, turned",
      paths: ["a_b=c"],
      entries: "a=b_c",
      want: undefined,
    },
    { name: "a pattern does not span the key", paths: ["a=*"], entries: "a_b=c", want: undefined },
    { name: "a pattern in a key takes any value", paths: ["a*"], entries: "ab=1", want: "a*" },
    { name: "and the key without more", paths: ["a*"], entries: "a=", want: "a*" },
    {
      name: "a pattern in a key does not span the value",
      paths: ["a*z"],
      entries: "a=z",
      want: undefined,
    },
    {
      name: "a pattern in a key beside an exact value",
      paths: ["a*=x"],
      entries: "ab=x",
      want: "a*=x",
    },
    { name: "and no other value", paths: ["a*=x"], entries: "ab=xy", want: undefined },
    { name: "patterns in both", paths: ["*a=*x"], entries: "ba=yx", want: "*a=*x" },
    {
      name: "the exact value wins over a pattern in a key",
      paths: ["a*", "ab=1"],
      entries: "ab=1",
      want: "ab=1",
    },
    {
      name: "a pattern in a key wins over the key alone",
      paths: ["ab", "a*"],
      entries: "ab=1",
      want: "a*",
    },
    {
      name: "patterns of key and value go by the file's order",
      paths: ["a*", "ab=1*"],
      entries: "ab=12",
      want: "a*",
    },
    {
      name: "patterns of key and value go by the file's order, turned",
      paths: ["ab=1*", "a*"],
      entries: "ab=12",
      want: "ab=1*",
    },
    {
      name: "what hangs below a pattern in a key",
      paths: ["a*", "b*", "a* c", "a* d"],
      entries: "ax=1 d=2",
      want: "a* d",
    },
    {
      name: "names of object members are keys",
      paths: ["a"],
      entries: "__proto__=1",
      want: undefined,
    },
    { name: "and values", paths: ["a=x"], entries: "a=constructor", want: undefined },
    {
      name: "a key repeats along a path",
      paths: ["a=x a=x a"],
      entries: "a=x a=x a=1",
      want: "a=x a=x a",
    },
  ])("$name", ({ paths, entries, want }) => {
    expect(met(paths, entries)).toBe(want);
  });

  it("meets nothing with no entries, and nothing in an empty tree", () => {
    expect(treeOf([ruleOf(pathOf("a"), 0)]).match([])).toBeUndefined();
    expect(treeOf([]).match(entriesOf("a=1"))).toBeUndefined();
  });

  it("matches paths of ten thousand levels", () => {
    const path = Array.from({ length: 10_000 }, (_, i) => ({ key: `k${i % 3}`, value: "v" }));
    const tree = treeOf([ruleOf(path, 7)]);
    expect(tree.match(path)?.index).toBe(7);
    expect(tree.match(path.slice(1))).toBeUndefined();
    expect(tree.match(path.slice(0, -1))).toBeUndefined();
  });

  it("equals the definition over flat rules", () => {
    const keys = fc.constantFrom("a", "b", "a_b");
    const stepKeys = fc.oneof(keys, fc.constantFrom("a*", "*", "*b"));
    const values = fc.constantFrom("x", "y", "xy", "", "b_x", "x*");
    const patterns = fc.constantFrom("x*", "*y", "*", "x*y", "**");
    const steps: fc.Arbitrary<PathStep> = fc.oneof(
      stepKeys.map((key) => ({ key })),
      fc.record({ key: stepKeys, value: fc.oneof(values, patterns) }),
    );
    const paths = fc.uniqueArray(fc.array(steps, { minLength: 1, maxLength: 3 }), {
      maxLength: 12,
      selector: (path) => JSON.stringify(path),
    });
    const entryLists = fc.array(fc.record({ key: keys, value: values }), { maxLength: 4 });
    const asked = fc.array(entryLists, { minLength: 1, maxLength: 20 });
    const property = fc.property(paths, asked, (all, questions) => {
      const rules = all.map(ruleOf);
      const tree = treeOf(rules);
      for (const entries of questions) {
        expect(tree.match(entries)?.index).toBe(matchFlat(rules, entries)?.index);
      }
    });
    fc.assert(property, propertyRuns(300));
  });
});
