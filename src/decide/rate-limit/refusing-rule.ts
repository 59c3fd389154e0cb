import type { Rule } from "../../core/limits/limit.js";
import { type ReportedRule, reportedRule } from "../../core/limits/reported-rule.js";
import type { CurrentLimit, Verdict } from "../../core/limits/verdict.js";
import type { PreparedQuery } from "./prepared-query.js";

/** A rule, and the one of its limits that a refused request waits longest for. */
interface RefusingRule {
  readonly rule: Rule;
  readonly limit: CurrentLimit;
}

/**
 * The rule that refused a request: of those that are over the one with the longest wait, which is
 * the one that a caller is told. Undefined where only limits are over that the request carried
 * itself: no policy names them.
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

/** What is told of rules that refuse: made once for each, and known again. */
export class ReportedRules {
  /** One a limit's name: as many as a rule has limits at most. */
  readonly #known = new WeakMap<Rule, ReportedRule[]>();

  /** The same object for the same limit of the same rule. */
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
