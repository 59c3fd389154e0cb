import {
  type ComparedPolicy,
  changeSentence,
  comparePolicies,
} from "../../policy/diff/policy-diff.js";
import type { Policy } from "../../policy/policy.js";
import { defaultProxies } from "../../policy/proxies/default-proxies.js";

/** The maximum number of changes that are listed individually. */
export const changesMax = 500;

const nothing: ComparedPolicy = {
  domains: [],
  rules: [],
  services: [],
  quotas: [],
  waitingRooms: [],
  budgets: [],
  prices: undefined,
  proxies: defaultProxies,
};

/** The changes between two policies as sentences, per limit; stricter limits come first. */
export function describeChanges(before: Policy | undefined, after: Policy): readonly string[] {
  const changes = comparePolicies(
    before === undefined ? nothing : comparedOf(before),
    comparedOf(after),
  );
  const sentences = changes.slice(0, changesMax).map(changeSentence);
  const restCount = changes.length - sentences.length;
  return restCount === 0 ? sentences : [...sentences, `and ${restCount} more changes`];
}

function comparedOf({ domains, ...policy }: Policy): ComparedPolicy {
  return { ...policy, domains: [...domains.keys()] };
}
