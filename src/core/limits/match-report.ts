import { globMatches, parseGlob } from "../collections/glob.js";
import type { DescriptorEntry } from "./key.js";
import { isPattern, type PathStep, type Rule } from "./limit.js";

/** A rule that was compared with a descriptor, and why it does not match. */
export interface TriedRule {
  readonly rule: Rule;
  /** Undefined for the matching rule. */
  readonly why: WhyNot | undefined;
}

/** Why a descriptor does not match a rule. */
type WhyNot =
  /** The entry at this index, from 0, has another key than the path. */
  | { readonly kind: "key"; readonly at: number; readonly step: PathStep }
  /** It has the same key and another value. */
  | { readonly kind: "value"; readonly at: number; readonly step: PathStep }
  /** The path continues after the end of the descriptor, or the reverse. */
  | { readonly kind: "longer" | "shorter"; readonly pathLength: number }
  /**
   * All entries match, but another step has precedence: an exact one, then patterns in file order.
   */
  | { readonly kind: "lessExact"; readonly at: number; readonly step: PathStep };

/** Maximum number of rules reported for one descriptor. */
export const triedRulesMax = 50;

/**
 * Returns the rules of a domain that are closest to a descriptor: the matching one first, then
 * those whose paths match furthest, in the order of the policy.
 *
 * @param matched the result of `DescriptorTree.match`
 */
export function reportMatch(
  rules: readonly Rule[],
  entries: readonly DescriptorEntry[],
  matched: Rule | undefined,
): readonly TriedRule[] {
  const tried = rules
    // A level that only contains others is not a rule.
    .filter((rule) => rule === matched || rule.effect.kind !== "none")
    .map((rule) => ({ rule, ...compare(rule, entries, matched) }));
  const sorted = tried.toSorted((one, other) => other.fitting - one.fitting);
  return sorted.slice(0, triedRulesMax).map(({ rule, why }) => ({ rule, why }));
}

interface Comparison {
  readonly why: WhyNot | undefined;
  /** The number of matching steps; Infinity for the matching rule. */
  readonly fitting: number;
}

function compare(
  rule: Rule,
  entries: readonly DescriptorEntry[],
  matched: Rule | undefined,
): Comparison {
  if (rule === matched) return { why: undefined, fitting: Number.POSITIVE_INFINITY };
  const { path } = rule;
  for (const [at, step] of path.entries()) {
    const entry = entries[at];
    if (entry === undefined) {
      return { why: { kind: "longer", pathLength: path.length }, fitting: at };
    }
    if (!globMatches(parseGlob(step.key), entry.key)) {
      return { why: { kind: "key", at, step }, fitting: at };
    }
    if (step.value !== undefined && !globMatches(parseGlob(step.value), entry.value)) {
      return { why: { kind: "value", at, step }, fitting: at + 0.5 };
    }
  }
  const fitting = path.length;
  if (entries.length > path.length) {
    return { why: { kind: "shorter", pathLength: path.length }, fitting };
  }
  return { why: { kind: "lessExact", ...firstOther(rule, matched) }, fitting };
}

/** Returns where the path of the matching rule diverges from the path of this one. */
function firstOther(
  { path }: Rule,
  matched: Rule | undefined,
): { readonly at: number; readonly step: PathStep } {
  for (const [at, step] of path.entries()) {
    const other = matched?.path[at];
    if (other === undefined || other.key !== step.key || other.value !== step.value) {
      return { at, step: other ?? step };
    }
  }
  return { at: 0, step: path[0] ?? { key: "" } };
}

/** Returns the reason as a sentence, with words of the policy but none of the caller. */
export function whyNotText(why: WhyNot): string {
  switch (why.kind) {
    case "key":
      return `entry ${why.at + 1} has a different key; this rule needs ${stepText(why.step)}`;
    case "value":
      return `${quoted(why.step.key)} does not have the value ${quoted(why.step.value ?? "")}`;
    case "longer":
      return `the rule has ${many(why.pathLength)}, but the descriptor has fewer`;
    case "shorter":
      return `the rule has ${many(why.pathLength)}, but the descriptor has more`;
    case "lessExact":
      return `at entry ${why.at + 1}, ${stepText(why.step)} takes precedence`;
  }
}

function stepText(step: PathStep): string {
  const value = step.value === undefined ? "" : `: ${quoted(step.value)}`;
  return `${isPattern(step) ? "the pattern " : ""}${quoted(step.key)}${value}`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

function many(count: number): string {
  return `${count} ${count === 1 ? "entry" : "entries"}`;
}
