/** A date of the Gregorian calendar: months from 1, days from 1. */
export interface CalendarDate {
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

/**
 * Days from 1970-01-01 to a date: whole years counted from March, so that a leap day is the last
 * one of its year. Source: E. M. Reingold, N. Dershowitz, "Calendrical Calculations", chapter 2.
 */
export function daysSince1970({ year, month, day }: CalendarDate): number {
  const marchYear = month > 2 ? year : year - 1;
  const marchMonth = (month + 9) % 12;
  const leapDays =
    Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400);
  return 365 * marchYear + leapDays + Math.floor((153 * marchMonth + 2) / 5) + day - 719_469;
}

/** The date so many days after 1970-01-01. */
export function dateOf(days: number): CalendarDate {
  // Off by a year at most: 400 years have 146,097 days.
  let year = Math.floor((days * 400) / 146_097) + 1970;
  while (daysSince1970({ year, month: 1, day: 1 }) > days) year -= 1;
  while (daysSince1970({ year: year + 1, month: 1, day: 1 }) <= days) year += 1;
  let month = 12;
  while (daysSince1970({ year, month, day: 1 }) > days) month -= 1;
  return { year, month, day: days - daysSince1970({ year, month, day: 1 }) + 1 };
}
