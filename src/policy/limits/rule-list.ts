import type { PathStep, Rule } from "../../core/limits/limit.js";

/** Maximum number of rules of one policy. */
export const rulesMax = 100_000;

/** A rule before it is added to the list: another rule may have the same label. */
export type RuleDraft = Omit<Rule, "index">;

/** The rules of a policy while it is read: assigns indexes and makes labels unique. */
export class RuleList {
  readonly #rules: Rule[] = [];
  #isOverfull = false;
  /** The last suffix assigned, by domain and label. */
  readonly #labelCounts = new Map<string, Map<string, number>>();

  get rules(): readonly Rule[] {
    return this.#rules;
  }

  /** True after a rule was rejected for lack of room. */
  get isOverfull(): boolean {
    return this.#isOverfull;
  }

  /** Adds a rule at the end; false, and not added, if the policy already has `rulesMax`. */
  add(draft: RuleDraft): boolean {
    this.#isOverfull = this.#rules.length >= rulesMax;
    if (this.#isOverfull) return false;
    const { domain, path, effect, label, ...extras } = draft;
    const distinct = this.#distinctLabel(domain, label);
    this.#rules.push({
      domain,
      path,
      effect,
      label: distinct,
      index: this.#rules.length,
      ...extras,
    });
    return true;
  }

  /**
   * Key and value are joined by `_` and levels by `.`, so different paths may read the same (`a_b`
   * and `a: b`). The later one in the policy gets `#2`, `#3`...: counters are kept by label.
   */
  #distinctLabel(domain: string, label: string): string {
    const counts = this.#labelCounts.get(domain) ?? new Map<string, number>();
    this.#labelCounts.set(domain, counts);
    const count = counts.get(label);
    if (count === undefined) {
      counts.set(label, 1);
      return label;
    }
    let suffix = count + 1;
    while (counts.has(`${label}#${suffix}`)) suffix += 1;
    counts.set(label, suffix);
    counts.set(`${label}#${suffix}`, 1);
    return `${label}#${suffix}`;
  }
}

/** A descriptor's part of a label. Source: the stat names of envoyproxy/ratelimit. */
export function stepLabel({ key, value }: PathStep): string {
  return value === undefined ? key : `${key}_${value}`;
}
