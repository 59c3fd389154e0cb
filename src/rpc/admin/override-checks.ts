import type { HandlerContext } from "@connectrpc/connect";
import { globMatches, parseGlob } from "../../core/collections/glob.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import { type Limit, limitsOf, type Rule } from "../../core/limits/limit.js";
import { type Override, overrideMaxOf, overrideRefusal } from "../../core/limits/override.js";
import type { Policy } from "../../policy/policy.js";
import { AdminFailure, notFound } from "./failures.js";
import { demandDomain, noRuleMeets, policyOf } from "./key-methods.js";
import type { AdminServiceParts } from "./service-parts.js";

/**
 * Checks that an override refers to something in the active policy, and gives no more than the
 * policy allows.
 *
 * @throws AdminFailure notFound, invalid
 */
export function checkOverride(
  parts: Pick<AdminServiceParts, "policies">,
  override: Override,
  context: HandlerContext,
): void {
  const policy = policyOf(parts);
  demandDomain(policy, override, context);
  const rules = concernedRules(policy, override);
  if (rules.length === 0) {
    const whose = override.isPrefix ? "a descriptor with this prefix" : "this descriptor";
    throw noRuleMeets(policy, override, whose);
  }
  const { limitName } = override;
  const limits = rules.flatMap((rule) => limitsOf(rule).map((limit) => ({ rule, limit })));
  const named = limits.filter(({ limit }) => limitName === undefined || limit.name === limitName);
  if (named.length === 0 && limitName !== undefined) {
    const names = limits.flatMap(({ limit }) => limit.name ?? []);
    throw notFound("limit of this rule", limitName, new Set(names));
  }
  for (const { rule, limit } of named) checkLimit(override, { rule, limit });
}

/** Whether an override changes a limit of a rule of the policy, as long as it lasts. */
export function concernsRule(
  { domains }: Pick<Policy, "domains">,
  rule: Rule,
  { domain, entries, isPrefix, limitName }: Override,
): boolean {
  if (domain !== rule.domain) return false;
  const isMet = isPrefix ? isBelow(rule, entries) : domains.get(domain)?.match(entries) === rule;
  return isMet && limitsOf(rule).some(({ name }) => (limitName ?? name) === name);
}

function checkLimit(
  override: Override,
  { rule, limit }: { readonly rule: Rule; readonly limit: Limit },
): void {
  const mostTimes = overrideMaxOf(limit);
  const refusal = overrideRefusal(limit, override, mostTimes);
  if (refusal === undefined) return;
  const whose = `the limit of rule ${JSON.stringify(rule.label)}`;
  throw new AdminFailure(
    "invalid",
    refusal === "aboveMax"
      ? `override: it allows more than ${mostTimes} times ${whose}, which is its overrideMax`
      : `override: ${whose} would take more than ten years to drain; set a smaller burst`,
  );
}

/** Returns the rules with limits that an override may refer to. */
function concernedRules(policy: Policy, { domain, entries, isPrefix }: Override): readonly Rule[] {
  if (!isPrefix) {
    const rule = policy.domains.get(domain)?.match(entries);
    return rule === undefined || limitsOf(rule).length === 0 ? [] : [rule];
  }
  return policy.rules.filter(
    (rule) => rule.domain === domain && limitsOf(rule).length > 0 && isBelow(rule, entries),
  );
}

function isBelow({ path }: Rule, entries: readonly DescriptorEntry[]): boolean {
  if (path.length < entries.length) return false;
  return entries.every(({ key, value }, i) => {
    const step = path[i];
    if (step === undefined || !fits(step.key, key)) return false;
    return step.value === undefined || fits(step.value, value);
  });
}

function fits(pattern: string, text: string): boolean {
  return pattern.includes("*") ? globMatches(parseGlob(pattern), text) : pattern === text;
}
