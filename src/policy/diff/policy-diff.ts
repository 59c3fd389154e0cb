import type { Rule } from "../../core/limits/limit.js";
import type { ProxyPolicy } from "../proxies/proxies.js";
import type { QuotaPolicy } from "../quotas/quota-policy.js";
import type { ServicePolicy } from "../services/service-policy.js";
import { compareDomains, compareRules } from "./limit-changes.js";
import { changeEffects, type PolicyChange } from "./policy-change.js";
import { compareQuotas } from "./quota-changes.js";
import { compareProxies, compareServices } from "./service-changes.js";

/** What of a policy is compared. */
export interface ComparedPolicy {
  readonly domains: readonly string[];
  readonly rules: readonly Rule[];
  readonly services: readonly ServicePolicy[];
  readonly quotas: readonly QuotaPolicy[];
  readonly proxies: ProxyPolicy;
}

/**
 * What changes from one policy to another, limit by limit and field by field. Those that make
 * something stricter come first; among equals, in the order of the policy. Empty: they mean the
 * same, however they are written.
 */
export function comparePolicies(
  before: ComparedPolicy,
  after: ComparedPolicy,
): readonly PolicyChange[] {
  const changes = [
    ...compareDomains(before.domains, after.domains),
    ...compareRules(before.rules, after.rules),
    ...compareServices(before.services, after.services),
    ...compareQuotas(before.quotas, after.quotas),
    ...compareProxies(before.proxies, after.proxies),
  ];
  return changeEffects.flatMap((effect) => changes.filter((one) => one.effect === effect));
}

/** A change as one sentence. */
export function changeSentence({ place, words }: Pick<PolicyChange, "place" | "words">): string {
  return `${place}: ${words}`;
}
