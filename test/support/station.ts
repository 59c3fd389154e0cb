import type { EventCalendar } from "../../src/simulate/engine/calendar.js";
import type { DrawMs } from "../../src/simulate/engine/distributions.js";

/** Calls back at times that lie `gapMs` apart, until `untilMs`. */
export function startArrivals(
  calendar: EventCalendar,
  { gapMs, untilMs }: { readonly gapMs: DrawMs; readonly untilMs: number },
  arrive: () => void,
): void {
  const next = (): void => {
    const delayMs = gapMs();
    if (calendar.nowMs + delayMs > untilMs) return;
    calendar.after(delayMs, () => {
      arrive();
      next();
    });
  };
  next();
}

/** The mean; NaN of nothing. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The value of which `ratio` of the values are not larger. */
export function quantile(values: readonly number[], ratio: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(ratio * sorted.length))] ?? Number.NaN;
}
