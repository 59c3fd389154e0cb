import { formatTimestamp, parseTimestampUs } from "../base/timestamp.js";

const dayUs = 86_400_000_000;

/** A day of the usage report, in UTC: `2026-11-27`. @param epochUs microseconds since 1970 */
export function usageDay(epochUs: number): string {
  return formatTimestamp(epochUs).slice(0, 10);
}

/** Reports whether a text is a day as formatted by `usageDay`. */
export function isUsageDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && startOf(text) !== undefined;
}

/**
 * Returns the days from one to another, both included. Undefined if the second is before the first
 * or there are more than `countMax`.
 */
export function usageDays(
  from: string,
  to: string,
  countMax: number,
): readonly string[] | undefined {
  const [first = Number.NaN, last = Number.NaN] = [startOf(from), startOf(to)];
  const count = Math.round((last - first) / dayUs) + 1;
  if (!(count >= 1 && count <= countMax)) return undefined;
  return Array.from({ length: count }, (_, i) => usageDay(first + i * dayUs));
}

function startOf(day: string): number | undefined {
  return parseTimestampUs(`${day}T00:00:00Z`);
}
