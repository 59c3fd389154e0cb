const secondsPerDay = 86_400;

const pattern =
  /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?$/;

/**
 * Parses a time into microseconds since 1970: `2026-01-05T08:00:00.123Z` (optionally with a space
 * for the `T`, any fraction, and an offset such as `+01:00`; default UTC), or seconds since 1970
 * with a fraction. Returns undefined for anything else, including a nonexistent day.
 *
 * Source: RFC 3339 section 5.6.
 */
export function parseTimestampUs(text: string): number | undefined {
  const match = pattern.exec(text);
  if (match === null) return parseEpochUs(text);
  const [, year, month, day, hour, minute, second, fraction = "", offset = "Z"] = match;
  const date: CalendarDate = { year: Number(year), month: Number(month), day: Number(day) };
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60 || !isDate(date)) {
    return undefined;
  }
  const time = (Number(hour) * 60 + Number(minute)) * 60 + Number(second);
  const seconds = daysSince1970(date) * secondsPerDay + time - offsetSeconds(offset);
  return seconds * 1_000_000 + microseconds(fraction);
}

function parseEpochUs(text: string): number | undefined {
  if (!/^\d{9,11}(?:\.\d{1,9})?$/.test(text)) return undefined;
  const [seconds = "", fraction = ""] = text.split(".");
  return Number(seconds) * 1_000_000 + microseconds(fraction);
}

/** Converts the digits after the decimal point. Finer digits are truncated. */
function microseconds(fraction: string): number {
  return Number(fraction.slice(0, 6).padEnd(6, "0"));
}

function offsetSeconds(offset: string): number {
  if (offset === "Z") return 0;
  const seconds = (Number(offset.slice(1, 3)) * 60 + Number(offset.slice(-2))) * 60;
  return offset.startsWith("-") ? -seconds : seconds;
}

/** Relies on a nonexistent day of two digits falling into another month. */
function isDate(date: CalendarDate): boolean {
  if (date.month < 1 || date.month > 12) return false;
  return dateOf(daysSince1970(date)).month === date.month;
}

/** Formats a time in UTC as `2026-01-05T08:00:00Z`. Fractions of a second are truncated. */
export function formatTimestamp(timeUs: number): string {
  const seconds = Math.floor(timeUs / 1_000_000);
  const days = Math.floor(seconds / secondsPerDay);
  const time = seconds - days * secondsPerDay;
  const { year, month, day } = dateOf(days);
  const date = [pad(year, 4), pad(month, 2), pad(day, 2)].join("-");
  const parts = [Math.floor(time / 3_600), Math.floor(time / 60) % 60, time % 60];
  return `${date}T${parts.map((part) => pad(part, 2)).join(":")}Z`;
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, "0");
}

/** Converts a protobuf timestamp or duration to milliseconds. Nanoseconds become a fraction. */
export function millisecondsOf(parts: {
  readonly seconds: bigint;
  readonly nanos: number;
}): number {
  return Number(parts.seconds) * 1_000 + parts.nanos / 1_000_000;
}

/** A date of the Gregorian calendar: months from 1, days from 1. */
export interface CalendarDate {
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

/**
 * Returns the days from 1970-01-01 to a date. Years start in March, so that a leap day comes last.
 * Source: E. M. Reingold, N. Dershowitz, "Calendrical Calculations", chapter 2.
 */
export function daysSince1970({ year, month, day }: CalendarDate): number {
  const marchYear = month > 2 ? year : year - 1;
  const marchMonth = (month + 9) % 12;
  const leapDays =
    Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400);
  return 365 * marchYear + leapDays + Math.floor((153 * marchMonth + 2) / 5) + day - 719_469;
}

/** Returns the date that is this many days after 1970-01-01. */
export function dateOf(days: number): CalendarDate {
  // The estimate is off by at most one year: 400 years have 146,097 days.
  let year = Math.floor((days * 400) / 146_097) + 1970;
  while (daysSince1970({ year, month: 1, day: 1 }) > days) year -= 1;
  while (daysSince1970({ year: year + 1, month: 1, day: 1 }) <= days) year += 1;
  let month = 12;
  while (daysSince1970({ year, month, day: 1 }) > days) month -= 1;
  return { year, month, day: days - daysSince1970({ year, month, day: 1 }) + 1 };
}
