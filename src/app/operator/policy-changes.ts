import {
  type ComparedPolicy,
  changeSentence,
  comparePolicies,
} from "../../policy/diff/policy-diff.js";
import type { Policy } from "../../policy/policy.js";
import { defaultProxies } from "../../policy/proxies/default-proxies.js";

/** The most changes that are told one by one. */
export const changesMax = 500;

const nothing: ComparedPolicy = {
  domains: [],
  rules: [],
  services: [],
  quotas: [],
  proxies: defaultProxies,
};

/** What one policy changes in another, in words, limit by limit; what is stricter comes first. */
export function describeChanges(before: Policy | undefined, after: Policy): readonly string[] {
  const changes = comparePolicies(
    before === undefined ? nothing : comparedOf(before),
    comparedOf(after),
  );
  const sentences = changes.slice(0, changesMax).map(changeSentence);
  const restCount = changes.length - sentences.length;
  return restCount === 0 ? sentences : [...sentences, `and ${restCount} more changes`];
}

function comparedOf({ domains, rules, services, quotas, proxies }: Policy): ComparedPolicy {
  return { domains: [...domains.keys()], rules, services, quotas, proxies };
}
