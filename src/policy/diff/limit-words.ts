import { type Limit, unitSeconds } from "../../core/limits/limit.js";
import { formatDuration } from "../text/duration.js";

/** How fast a limit drains, in words. Example: `1,800 per minute`, `5 per 10 s`, `none`. */
export function rateWords({ hits, unit, unitMultiplier }: Limit): string {
  if (hits === 0) return "none";
  const period =
    unitMultiplier === 1
      ? unit
      : unit === "second"
        ? `${groupThousands(unitMultiplier)} s`
        : `${groupThousands(unitMultiplier)} ${unit}s`;
  return `${groupThousands(hits)} per ${period}`;
}

/** A limit in words. Example: `1,800 per minute, at most 100 at once, delays up to 200ms`. */
export function limitWords(limit: Limit): string {
  const { over } = limit;
  const delay = over?.kind !== "delay" ? "" : `, delays up to ${formatDuration(over.maxMs)}`;
  return `${amountWords(limit)}${delay}`;
}

function amountWords(limit: Limit): string {
  const { hits, burst, algorithm } = limit;
  if (algorithm?.kind === "fixed_window") return `${rateWords(limit)}, in ${windowWords(limit)}`;
  return burst === hits
    ? rateWords(limit)
    : `${rateWords(limit)}, at most ${groupThousands(burst)} at once`;
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
export function groupThousands(count: number): string {
  const [whole = "", fraction] = String(count).split(".");
  const text = whole.replaceAll(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? text : `${text}.${fraction}`;
}
