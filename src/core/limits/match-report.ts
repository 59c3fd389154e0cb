import { globMatches, parseGlob } from "../collections/glob.js";
import type { DescriptorEntry } from "./key.js";
import { isPattern, type PathStep, type Rule } from "./limit.js";

/** A rule that was looked at for a descriptor, and why it is not the one. */
export interface TriedRule {
  readonly rule: Rule;
  /** Undefined for the rule that the descriptor meets. */
  readonly why: WhyNot | undefined;
}

/** Why a descriptor does not meet a rule. */
type WhyNot =
  /** The entry at a place, from 0, has another key than the path. */
  | { readonly kind: "key"; readonly at: number; readonly step: PathStep }
  /** It has the key, and another value. */
  | { readonly kind: "value"; readonly at: number; readonly step: PathStep }
  /** The path goes on where the descriptor ends, or the other way round. */
  | { readonly kind: "longer" | "shorter"; readonly pathLength: number }
  /** All fits, but another step comes first: the exact one, then patterns in the file's order. */
  | { readonly kind: "lessExact"; readonly at: number; readonly step: PathStep };

/** The most rules that are told of one descriptor. */
export const triedRulesMax = 50;

/**
 * The rules of a domain that come nearest to a descriptor: the one that it meets first, then those
 * whose paths fit furthest, in the order of the policy.
 *
 * @param matched what `DescriptorTree.match` says
 */
export function reportMatch(
  rules: readonly Rule[],
  entries: readonly DescriptorEntry[],
  matched: Rule | undefined,
): readonly TriedRule[] {
  const tried = rules
    // A level that only leads to others is no rule of its own.
    .filter((rule) => rule === matched || rule.effect.kind !== "none")
    .map((rule) => ({ rule, ...compare(rule, entries, matched) }));
  const sorted = tried.toSorted((one, other) => other.fitting - one.fitting);
  return sorted.slice(0, triedRulesMax).map(({ rule, why }) => ({ rule, why }));
}

interface Comparison {
  readonly why: WhyNot | undefined;
  /** Steps that fit; Infinity for the rule that is met. */
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

/** Where the way to the rule that is met leaves the way to this one. */
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

/** The reason as a sentence; it holds the policy's words and no caller's. */
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
