import type { Rule } from "../core/limits/limit.js";

/** Maximum length of one file, in UTF-16 units. */
export const fileCharsMax = 4_194_304;

/** Maximum length of all files together, in UTF-16 units. */
export const policyCharsMax = 16_777_216;

/** Size of a policy: the numbers that logs, readiness, metrics and commands report. */
export interface PolicySize {
  readonly domainCount: number;
  /** Descriptors with an effect: limited or unlimited, including those of quotas. */
  readonly ruleCount: number;
  /** The limits of all rules: a descriptor may have several. */
  readonly limitCount: number;
  readonly serviceCount: number;
  readonly roomCount: number;
  readonly budgetCount: number;
}

/** The size of no policy. */
export const emptyPolicySize: PolicySize = {
  domainCount: 0,
  ruleCount: 0,
  limitCount: 0,
  serviceCount: 0,
  roomCount: 0,
  budgetCount: 0,
};

/** Reports whether it is a rule, and not a level that only leads to others. */
export function isRule({ effect }: Pick<Rule, "effect">): boolean {
  return effect.kind !== "none";
}

/** Counts the parts of a policy. */
export function measurePolicy(policy: {
  readonly domains: Iterable<unknown>;
  readonly rules: readonly Rule[];
  readonly services: readonly unknown[];
  readonly waitingRooms: readonly unknown[];
  readonly budgets: readonly unknown[];
}): PolicySize {
  let limitCount = 0;
  for (const { effect } of policy.rules) {
    if (effect.kind === "limited") limitCount += effect.limits.length;
  }
  return {
    domainCount: [...policy.domains].length,
    ruleCount: policy.rules.filter(isRule).length,
    limitCount,
    serviceCount: policy.services.length,
    roomCount: policy.waitingRooms.length,
    budgetCount: policy.budgets.length,
  };
}
