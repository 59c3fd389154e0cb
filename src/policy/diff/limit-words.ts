import type { HeaderField } from "../../core/base/header-field.js";
import { type Limit, type OverLimit, unitSeconds } from "../../core/limits/limit.js";
import type { BudgetPeriod } from "../budgets/budget-form.js";
import { formatDuration } from "../text/duration.js";
import type { ChangeEffect } from "../text/form.js";

/** Describes the rate of a limit. Example: `1,800 per minute`, `5 per 10 s`, `none`. */
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

/** Describes a limit. Example: `1,800 per minute, at most 100 at once, delays up to 200ms`. */
export function limitWords(limit: Limit): string {
  const { over, spread } = limit;
  const where = spread === undefined ? "" : ", over all regions";
  return `${amountWords(limit)}${where}${over === undefined ? "" : `, ${overWords(over)}`}`;
}

/** Describes the handling of requests over a limit. Example: `delays up to 200ms`. */
export function overWords(over: OverLimit): string {
  switch (over.kind) {
    case "delay":
      return `delays up to ${formatDuration(over.maxMs)}`;
    case "annotate":
      return `annotates with ${over.headers.map(fieldWords).join(", ")}`;
    case "fallback": {
      const { to } = over;
      const where = to.kind === "cluster" ? `cluster ${to.cluster}` : fieldWords(to.header);
      return `falls back to ${where}`;
    }
  }
}

/** Describes when a budget's spent amount expires. */
export function periodWords(period: BudgetPeriod): string {
  if (period.kind === "calendar") return `each ${period.unit} in ${period.timeZone}`;
  return `draining in ${formatDuration(period.periodUs / 1_000)}`;
}

/** Formats a header. */
export function fieldWords({ name, value }: HeaderField): string {
  return `${name}: ${value}`;
}

/** Returns the effect of another handling of requests over a limit; undefined: a refusal. */
export function overEffect(was: OverLimit | undefined, is: OverLimit | undefined): ChangeEffect {
  const order = overOrder[was?.kind ?? "refuse"] - overOrder[is?.kind ?? "refuse"];
  return order === 0 ? "different" : order > 0 ? "stricter" : "looser";
}

/** Order of the kinds by how many requests over the limit they admit. */
const overOrder = { refuse: 0, delay: 1, annotate: 2, fallback: 2 } as const;

function amountWords(limit: Limit): string {
  const { hits, burst, algorithm } = limit;
  if (algorithm?.kind === "fixed_window") return `${rateWords(limit)}, in ${windowWords(limit)}`;
  return burst === hits
    ? rateWords(limit)
    : `${rateWords(limit)}, at most ${groupThousands(burst)} at once`;
}

/** Describes the windows of a limit. */
export function windowWords({ algorithm }: Limit): string {
  if (algorithm?.kind !== "fixed_window") return "no windows";
  const { timeZone } = algorithm;
  return timeZone === undefined ? "windows" : `the calendar's windows of ${timeZone}`;
}

/** Returns the hits a second that a limit admits in the long run. */
export function hitsPerSecond({ hits, unit, unitMultiplier }: Limit): number {
  return hits / (unitSeconds[unit] * unitMultiplier);
}

/** Formats a number with commas between thousands. */
export function groupThousands(count: number): string {
  const [whole = "", fraction] = String(count).split(".");
  const text = whole.replaceAll(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? text : `${text}.${fraction}`;
}
