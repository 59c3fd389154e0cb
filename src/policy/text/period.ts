import { drainTimeUsMax, type LimitUnit, unitSeconds } from "../../core/limits/limit.js";

/** Seconds of each letter of a period, largest first: the order in which they must be written. */
const letterSeconds: ReadonlyArray<readonly [letter: string, seconds: number]> = [
  ["w", unitSeconds.week],
  ["d", unitSeconds.day],
  ["h", unitSeconds.hour],
  ["m", unitSeconds.minute],
  ["s", unitSeconds.second],
];

/** Maximum period: ten years. */
export const periodSecondsMax = drainTimeUsMax / 1_000_000;

/** Maximum digits of one number in a period; more would exceed every limit. */
const periodDigitsMax = 10;

/** Result of reading a period's text. */
type PeriodText =
  /** A whole number, at least 1; not yet compared to `periodSecondsMax`. */
  { readonly kind: "period"; readonly seconds: number } | { readonly kind: "unreadable" };

/**
 * Reads a period: numbers with the letters w, d, h, m, s, each at most once and largest first.
 *
 * Example: `1h30m` is 5_400 seconds. A period of zero is unreadable: nothing drains in no time.
 */
export function parsePeriod(text: string): PeriodText {
  let rest = text;
  let seconds = 0;
  for (const [letter, lengthSeconds] of letterSeconds) {
    const digits = /^[0-9]+/.exec(rest.slice(0, periodDigitsMax))?.[0] ?? "";
    if (digits === "" || rest[digits.length] !== letter) continue;
    seconds += Number(digits) * lengthSeconds;
    rest = rest.slice(digits.length + 1);
  }
  return rest === "" && seconds > 0 ? { kind: "period", seconds } : { kind: "unreadable" };
}

/** Units of fixed length, largest first. */
const plainUnits: readonly LimitUnit[] = ["day", "hour", "minute", "second"];

/**
 * Splits a period into a unit and its multiple, for protocols that know only units: the largest of
 * day, hour, minute and second that divides it. Example: 5_400 seconds are 90 minutes.
 */
export function unitOfPeriod(seconds: number): { unit: LimitUnit; unitMultiplier: number } {
  const unit = plainUnits.find((plain) => seconds % unitSeconds[plain] === 0) ?? "second";
  return { unit, unitMultiplier: seconds / unitSeconds[unit] };
}
