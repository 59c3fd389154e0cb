import { denialOf, isSettled, type Limit, type Rule } from "../../core/limits/limit.js";
import type { Policy } from "../../policy/policy.js";

/**
 * The active policy as text, a line a limit: what `/rlconfig` of envoyproxy/ratelimit shows, and
 * after it what its files cannot say. Rules of its files have its lines and nothing more; without a
 * policy or limits there is none.
 *
 * Source: envoyproxy/ratelimit, src/config/config_impl.go, `dump`.
 */
export function renderPolicy(policy: Policy | undefined): string {
  const lines = policy?.rules.flatMap(ruleLines) ?? [];
  return lines.map((line) => `${line}\n`).join("");
}

function ruleLines(rule: Rule): readonly string[] {
  const name = `${rule.domain}.${rule.label}`;
  switch (rule.effect.kind) {
    case "none":
      return [];
    case "unlimited":
      return [`${name}: ${unlimitedText}`];
    case "limited":
      return rule.effect.limits.map((limit) => {
        const own = rule.settlesOncePeeked === true ? [] : ownFacts(limit);
        return `${name}: ${[limitText(limit), ...own].join(", ")}`;
      });
  }
}

/** The unit that nobody has set. */
const unlimitedText = "unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false";

function limitText({ hits, unit, role }: Limit): string {
  const denial = denialOf(role);
  const modes = `shadow_mode: ${denial === "shadow"}, quota_mode: ${denial === "quota"}`;
  return `unit=${unit.toUpperCase()} requests_per_unit=${hits}, ${modes}`;
}

function ownFacts(limit: Limit): readonly string[] {
  const { hits, unitMultiplier, burst, role, algorithm, onStoreFailure, overrideMax } = limit;
  return [
    ...(isSettled(role) ? ["charge: settle"] : []),
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
}
