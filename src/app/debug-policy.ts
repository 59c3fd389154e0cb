import type { Limit, Rule } from "../core/limit.js";
import type { Policy } from "../policy/policy.js";

/**
 * The policy in force as text, a line a limit: what `/rlconfig` of envoyproxy/ratelimit shows, and
 * after it what its files cannot say.
 */
export function renderPolicy(policy: Policy | undefined): string {
  if (policy === undefined) return "There is no policy yet.\n";
  const lines = policy.rules.flatMap(ruleLines);
  return lines.length === 0 ? "The policy has no limits.\n" : `${lines.join("\n")}\n`;
}

function ruleLines(rule: Rule): readonly string[] {
  const name = `${rule.domain}.${rule.label}`;
  switch (rule.effect.kind) {
    case "none":
      return [];
    case "unlimited":
      return [`${name}: unlimited`];
    case "limited":
      return rule.effect.limits.map((limit) => `${name}: ${limitText(limit)}`);
  }
}

function limitText(limit: Limit): string {
  const { hits, unit, unitMultiplier, burst, role, algorithm, onStoreFailure, overrideMax } = limit;
  const facts = [
    `unit=${unit.toUpperCase()} requests_per_unit=${hits}`,
    `shadow_mode: ${role === "shadow"}`,
    ...(role === "quota" ? ["quota_mode: true"] : []),
    ...(role === "settle" ? ["charge: settle"] : []),
    ...(limit.name === undefined ? [] : [`name: ${limit.name}`]),
    ...(unitMultiplier === 1 ? [] : [`unit_multiplier: ${unitMultiplier}`]),
    ...(burst === hits ? [] : [`burst: ${burst}`]),
    ...(algorithm?.kind === "fixed_window" ? ["algorithm: fixed_window"] : []),
    ...(algorithm?.kind === "fixed_window" && algorithm.timeZone !== undefined
      ? [`time_zone: ${algorithm.timeZone}`]
      : []),
    ...(onStoreFailure === "local" ? [] : [`on_store_failure: ${onStoreFailure}`]),
    ...(overrideMax === undefined ? [] : [`overrideMax: ${overrideMax}`]),
  ];
  return facts.join(", ");
}
