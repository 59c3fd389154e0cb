import { type Limit, type Rule, unitSeconds } from "../core/limit.js";
import { visibleText } from "./problem.js";

/** How fast a limit drains, in words. Example: `1,800 per minute`, `5 per 10 s`, `none`. */
export function rateWords({ hits, unit, unitMultiplier }: Limit): string {
  if (hits === 0) return "none";
  const period =
    unitMultiplier === 1
      ? unit
      : unit === "second"
        ? `${grouped(unitMultiplier)} s`
        : `${grouped(unitMultiplier)} ${unit}s`;
  return `${grouped(hits)} per ${period}`;
}

/** A limit in words. Example: `1,800 per minute, at most 100 at once`. */
export function limitWords(limit: Limit): string {
  const { hits, burst, algorithm } = limit;
  if (algorithm?.kind === "fixed_window") return `${rateWords(limit)}, in ${windowWords(limit)}`;
  return burst === hits
    ? rateWords(limit)
    : `${rateWords(limit)}, at most ${grouped(burst)} at once`;
}

/** How a limit's windows are counted. */
export function windowWords({ algorithm }: Limit): string {
  if (algorithm?.kind !== "fixed_window") return "no windows";
  const { timeZone } = algorithm;
  return timeZone === undefined ? "windows" : `the calendar's windows of ${timeZone}`;
}

/** What a limit lets pass in a second, over a long time. */
export function hitsPerSecond({ hits, unit, unitMultiplier }: Limit): number {
  return hits / (unitSeconds[unit] * unitMultiplier);
}

/** A whole number with commas between thousands. */
export function grouped(count: number): string {
  const [whole = "", fraction] = String(count).split(".");
  const text = whole.replaceAll(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? text : `${text}.${fraction}`;
}

/** Rules that a notice names; it counts the others. */
const namedRulesMax = 5;

/**
 * What is to be said of rules of envoyproxy/ratelimit's dialect that are right by the letter, and
 * cannot be meant: it takes a `requests_per_unit` that is missing for 0, and refuses all that meets
 * the rule; and a `rate_limit` without a value for none, and lets all pass.
 */
export function ruleNotices(rules: readonly Rule[]): readonly string[] {
  const blocking = rules.filter(
    ({ effect }) => effect.kind === "limited" && effect.limits.some((one) => one.areHitsLeftOut),
  );
  const open = rules.filter(({ effect }) => effect.kind === "none" && effect.isLeftEmpty);
  const notices: string[] = [];
  if (blocking.length > 0) {
    notices.push(
      "requests_per_unit is missing, so it is 0 and every request is refused: " +
        `${listed(blocking)}. Write the number, or requests_per_unit: 0 to block.`,
    );
  }
  if (open.length > 0) {
    notices.push(
      `rate_limit has no value, so nothing is limited: ${listed(open)}. ` +
        "See whether the file was cut off; write the limit, or leave rate_limit out.",
    );
  }
  return notices;
}

function listed(rules: readonly Rule[]): string {
  const names = rules.slice(0, namedRulesMax).map(({ domain, label }) => `${domain}.${label}`);
  const restCount = rules.length - names.length;
  return visibleText(names.join(", ")) + (restCount === 0 ? "" : ` and ${restCount} more`);
}
