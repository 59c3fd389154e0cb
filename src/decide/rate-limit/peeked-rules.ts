import type { Charge } from "../../core/limits/bucket.js";
import type { Rule } from "../../core/limits/limit.js";
import type { Policy } from "../../policy/policy.js";
import { newlyPeekedRules, type PreparedQuery } from "./prepared-query.js";

/**
 * Rules of one policy that settle since a call has peeked at them (`Rule.settlesOncePeeked`): what
 * is active, the shadow policy and what is tried out learn them in this one way.
 */
export class PeekedRules {
  #rules: ReadonlySet<Rule> = new Set();
  #policy: Policy | undefined;

  /** Those of the policy that calls are charged by, to be prepared with: swapped whole. */
  under(policy: Policy): ReadonlySet<Rule> {
    if (policy !== this.#policy) {
      this.#rules = new Set();
      this.#policy = policy;
    }
    return this.#rules;
  }

  /**
   * Those that calls of a policy would be charged by as things are: of another one than that in
   * force, its rules of the same names.
   */
  alike(policy: Policy): ReadonlySet<Rule> {
    if (policy === this.#policy) return this.#rules;
    const names = new Set([...this.#rules].map(nameOf));
    const isAlike = (rule: Rule) => rule.settlesOncePeeked === true && names.has(nameOf(rule));
    return new Set(names.size === 0 ? [] : policy.rules.filter(isAlike));
  }

  /** Whoever peeks tells the cost after the response: from the next call on it is stored. */
  note(prepared: PreparedQuery, charges: readonly Charge[]): void {
    if (charges === prepared.charges || prepared.policy !== this.#policy) return;
    this.add(newlyPeekedRules(prepared, charges));
  }

  /** Adds rules of the policy that somebody has peeked at. */
  add(rules: readonly Rule[]): void {
    const fresh = rules.filter((rule) => !this.#rules.has(rule));
    if (fresh.length > 0) this.#rules = new Set([...this.#rules, ...fresh]);
  }
}

function nameOf({ domain, label }: Rule): string {
  return JSON.stringify([domain, label]);
}
