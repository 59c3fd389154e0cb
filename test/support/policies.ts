import type { Limit, PathStep, Rule, RuleEffect } from "../../src/core/limits/limit.js";
import { type Policy, PolicyBuilder } from "../../src/policy/policy.js";

/** A limit of `hits` a minute with that burst, enforced, but for what the test says. */
export function testLimit(hits: number, fields: Partial<Limit> = {}): Limit {
  return {
    hits,
    unit: "minute",
    unitMultiplier: 1,
    periodUs: 60_000_000,
    burst: hits,
    role: "enforce",
    peek: "debt",
    onStoreFailure: "local",
    ...fields,
  };
}

/** A rule as a test writes it down: `path` holds `key` or `key=value` steps. */
export interface TestRule {
  readonly path: readonly string[];
  readonly effect: RuleEffect | readonly Limit[];
  /** What else the rule says. */
  readonly fields?: Partial<Rule>;
}

/** A policy of one domain, "shop", with these rules in order. */
export function testPolicy(rules: readonly TestRule[], version = "v1"): Policy {
  const builder = new PolicyBuilder(version);
  builder.addDomains(["shop"]);
  builder.add(
    rules.map(({ path, effect, fields }, index): Rule => {
      const limits = effect as readonly Limit[];
      return {
        domain: "shop",
        path: path.map(pathStep),
        effect: Array.isArray(effect) ? { kind: "limited", limits } : (effect as RuleEffect),
        label: path.join(".").replaceAll("=", "_"),
        index,
        ...fields,
      };
    }),
  );
  return builder.finish();
}

function pathStep(text: string): PathStep {
  const [key = "", value] = text.split("=");
  return value === undefined ? { key } : { key, value };
}
