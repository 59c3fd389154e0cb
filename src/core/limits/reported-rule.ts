import type { Limit, Rule, RuleDisclosure } from "./limit.js";

/**
 * By default, operators of Envoy and Headgate see the reason, and denied callers only when to
 * retry.
 */
export const defaultDisclosure: RuleDisclosure = { header: false, metadata: true, log: true };

/** Names what denied a request. Sent if the policy says `tellRule: {header: true}`. */
export const ruleHeader = "x-headgate-rule";

/** The rule that denied a request, and its limit, as named in the policy. */
export interface ReportedRule {
  readonly domain: string;
  /** Its label. */
  readonly rule: string;
  /** Undefined if the limit has no name. */
  readonly limit: string | undefined;
  readonly disclosure: RuleDisclosure;
}

/** Returns the reported form of a rule and its limit. */
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

/** A text as a header value: printable ASCII, whatever names the policy uses. */
export function asciiHeaderText(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/gu, "?").trim();
}
