import type { Limit, Rule, RuleDisclosure } from "./limit.js";

/** Who runs Envoy and Headgate learns why; who is refused learns no more than when to come back. */
export const defaultDisclosure: RuleDisclosure = { header: false, metadata: true, log: true };

/** Names what refused a request; sent where the policy says `tellRule: {header: true}`. */
export const ruleHeader = "x-headgate-rule";

/** The rule that refused a request, and its limit, in the policy's own words. */
export interface ReportedRule {
  readonly domain: string;
  /** Its label. */
  readonly rule: string;
  /** Undefined where the limit has no name. */
  readonly limit: string | undefined;
  readonly disclosure: RuleDisclosure;
}

/** What is told of a limit of a rule. */
export function reportedRule(
  { domain, label, disclosure = defaultDisclosure }: Rule,
  { name }: Pick<Limit, "name">,
): ReportedRule {
  return { domain, rule: label, limit: name, disclosure };
}

/**
 * The value of `ruleHeader`.
 *
 * Example: `user.path_/login/daily` for the limit `daily` of the rule `user.path_/login`.
 */
export function reportedRuleText({ rule, limit }: Pick<ReportedRule, "rule" | "limit">): string {
  return asciiHeaderText(limit === undefined ? rule : `${rule}/${limit}`);
}

/** The fields of dynamic metadata that name the rule. */
export function reportedRuleFields({
  domain,
  rule,
  limit,
}: ReportedRule): ReadonlyMap<string, string> {
  const fields = new Map([
    ["domain", domain],
    ["rule", rule],
  ]);
  return limit === undefined ? fields : fields.set("limit", limit);
}

/** A text as a header's value: printable ASCII, whatever a policy calls its things. */
export function asciiHeaderText(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/gu, "?").trim();
}
