import type { Charge } from "../../core/limits/bucket.js";
import type { Rule } from "../../core/limits/limit.js";
import type { Policy } from "../../policy/policy.js";
import { newlyPeekedRules, type PreparedQuery } from "./prepared-query.js";

/**
 * Rules of one policy that settle because a call has peeked at them (`Rule.settlesOncePeeked`). The
 * active policy, the shadow policy and simulations all learn these rules here.
 */
export class PeekedRules {
  #rules: ReadonlySet<Rule> = new Set();
  #policy: Policy | undefined;

  /** The settling rules of the active policy. An immutable snapshot, for preparing queries. */
  under(policy: Policy): ReadonlySet<Rule> {
    if (policy !== this.#policy) {
      this.#rules = new Set();
      this.#policy = policy;
    }
    return this.#rules;
  }

  /**
   * The rules of another policy that would settle if that policy were active: those with the same
   * names as settling rules of the active one.
   */
  alike(policy: Policy): ReadonlySet<Rule> {
    if (policy === this.#policy) return this.#rules;
    const names = new Set([...this.#rules].map(nameOf));
    const isAlike = (rule: Rule) => rule.settlesOncePeeked === true && names.has(nameOf(rule));
    return new Set(names.size === 0 ? [] : policy.rules.filter(isAlike));
  }

  /**
   * A caller that peeks reports its cost after the response. The rule settles from the next call
   * on.
   */
  note(prepared: PreparedQuery, charges: readonly Charge[]): void {
    if (charges === prepared.charges || prepared.policy !== this.#policy) return;
    this.add(newlyPeekedRules(prepared, charges));
  }

  /** Adds rules of the policy that were peeked at. */
  add(rules: readonly Rule[]): void {
    const fresh = rules.filter((rule) => !this.#rules.has(rule));
    if (fresh.length > 0) this.#rules = new Set([...this.#rules, ...fresh]);
  }
}

function nameOf({ domain, label }: Rule): string {
  return JSON.stringify([domain, label]);
}
