import type { Limit, Rule, RuleTelling } from "./limit.js";

/** Who runs Envoy and Headgate learns why; who is refused learns no more than when to come back. */
export const usualTelling: RuleTelling = { header: false, metadata: true, log: true };

/** Names what refused a request; sent where the policy says `tellRule: {header: true}`. */
export const ruleHeader = "x-headgate-rule";

/** The rule that refused a request, and its limit, in the policy's own words. */
export interface ToldRule {
  readonly domain: string;
  /** Its label. */
  readonly rule: string;
  /** Undefined where the limit has no name. */
  readonly limit: string | undefined;
  readonly telling: RuleTelling;
}

/** What is told of a limit of a rule. */
export function toldRule(
  { domain, label, telling = usualTelling }: Rule,
  { name }: Pick<Limit, "name">,
): ToldRule {
  return { domain, rule: label, limit: name, telling };
}

/**
 * The value of `ruleHeader`.
 *
 * Example: `user.path_/login/daily` for the limit `daily` of the rule `user.path_/login`.
 */
export function toldRuleText({ rule, limit }: Pick<ToldRule, "rule" | "limit">): string {
  return headerText(limit === undefined ? rule : `${rule}/${limit}`);
}

/** The fields of dynamic metadata that name the rule. */
export function toldRuleFields({ domain, rule, limit }: ToldRule): ReadonlyMap<string, string> {
  const fields = new Map([
    ["domain", domain],
    ["rule", rule],
  ]);
  return limit === undefined ? fields : fields.set("limit", limit);
}

/** A text as a header's value: printable ASCII, whatever a policy calls its things. */
export function headerText(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/gu, "?").trim();
}
