import type { Rule } from "../../core/limits/limit.js";
import { type ReportedRule, reportedRule } from "../../core/limits/reported-rule.js";
import type { CurrentLimit, Verdict } from "../../core/limits/verdict.js";
import type { PreparedQuery } from "./prepared-query.js";

/** A rule, and its limit that a denied request waits longest for. */
interface RefusingRule {
  readonly rule: Rule;
  readonly limit: CurrentLimit;
}

/**
 * The rule that denied a request: of the rules over their limits, the one with the longest wait,
 * which is also the one in the response. Undefined if only limits that the request carried are
 * over, because they have no name in the policy.
 */
export function refusingRule(
  { descriptors }: PreparedQuery,
  { statuses }: Verdict,
): RefusingRule | undefined {
  let found: RefusingRule | undefined;
  let longestUs = -1;
  for (let i = 0; i < descriptors.length; i += 1) {
    const descriptor = descriptors[i];
    const status = statuses[i];
    if (status?.isOver !== true || descriptor?.kind !== "limited") continue;
    const { currentLimit: limit, durationUntilResetUs = 0 } = status;
    if (descriptor.rule === undefined || limit === undefined) continue;
    if (durationUntilResetUs <= longestUs) continue;
    longestUs = durationUntilResetUs;
    found = { rule: descriptor.rule, limit };
  }
  return found;
}

/** Caches the reported form of each rule that denies requests. */
export class ReportedRules {
  /** One per limit name: at most as many as the rule has limits. */
  readonly #known = new WeakMap<Rule, ReportedRule[]>();

  /** Returns the same object for the same limit of the same rule. */
  of({ rule, limit }: RefusingRule): ReportedRule {
    const known = this.#known.get(rule);
    if (known !== undefined) {
      for (const found of known) if (found.limit === limit.name) return found;
    }
    const made = reportedRule(rule, limit);
    if (known === undefined) this.#known.set(rule, [made]);
    else known.push(made);
    return made;
  }
}
