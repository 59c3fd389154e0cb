import { type CalendarDate, dateOf, daysSince1970 } from "../../core/base/timestamp.js";
import type { LimitUnit } from "../../core/limits/limit.js";
import type { Windows } from "../../core/limits/window.js";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * Returns the current calendar window and the next one: an hour, a day, a week that starts on
 * Monday, a month or a year, in a time zone. A day or a longer window starts at the first instant
 * of its date, even if a clock change skips midnight. An hour always lasts 60 minutes.
 *
 * @param timeZone a name in the IANA time zone database
 * @param nowUs microseconds since 1970
 */
export function calendarWindows(unit: LimitUnit, timeZone: string, nowUs: number): Windows {
  const zone = new Zone(timeZone);
  const nowMs = Math.floor(nowUs / 1_000);
  if (unit === "hour") {
    const localMs = nowMs + zone.offsetMs(nowMs);
    const startMs = nowMs - modulo(localMs, hourMs);
    return windowsOf([startMs, startMs + hourMs, startMs + 2 * hourMs]);
  }
  const start = startOf(unit, zone.date(nowMs));
  const starts = [start, after(unit, start), after(unit, after(unit, start))];
  return windowsOf(starts.map((local) => zone.firstInstantMs(local)));
}

function windowsOf([startMs = 0, endMs = 0, nextEndMs = 0]: readonly number[]): Windows {
  return { startUs: startMs * 1_000, endUs: endMs * 1_000, nextEndUs: nextEndMs * 1_000 };
}

/** The first day of the window. */
function startOf(unit: LimitUnit, { year, month, day }: CalendarDate): CalendarDate {
  switch (unit) {
    case "year":
      return { year, month: 1, day: 1 };
    case "month":
      return { year, month, day: 1 };
    case "week": {
      // Day 0 was a Thursday, three days after a Monday.
      const days = daysSince1970({ year, month, day });
      return dateOf(days - modulo(days + 3, 7));
    }
    default:
      return { year, month, day };
  }
}

/** The start of the window that follows the one that starts at `start`. */
function after(unit: LimitUnit, start: CalendarDate): CalendarDate {
  const { year, month } = start;
  if (unit === "year") return { year: year + 1, month: 1, day: 1 };
  if (unit === "month") {
    return month === 12 ? { year: year + 1, month: 1, day: 1 } : { year, month: month + 1, day: 1 };
  }
  return dateOf(daysSince1970(start) + (unit === "week" ? 7 : 1));
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by;
}

/** A time zone of the runtime's database. */
class Zone {
  readonly #format: Intl.DateTimeFormat;

  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      calendar: "gregory",
      numberingSystem: "latn",
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  }

  /** The offset of the zone from UTC. */
  offsetMs(ms: number): number {
    const wholeMs = ms - modulo(ms, 1_000);
    const part = new Map<string, number>();
    for (const { type, value } of this.#format.formatToParts(wholeMs))
      part.set(type, Number(value));
    const of = (type: string): number => part.get(type) ?? 0;
    const days = daysSince1970({ year: of("year"), month: of("month"), day: of("day") });
    const seconds = (of("hour") * 60 + of("minute")) * 60 + of("second");
    return days * dayMs + seconds * 1_000 - wholeMs;
  }

  date(ms: number): CalendarDate {
    return dateOf(Math.floor((ms + this.offsetMs(ms)) / dayMs));
  }

  /**
   * The first instant of a date. The offset changes at most once around midnight of that date, so
   * only the offsets of the day before and the day after are possible. If the change skips
   * midnight, the date starts at the change.
   */
  firstInstantMs(date: CalendarDate): number {
    const guessMs = daysSince1970(date) * dayMs;
    const offsets = [this.offsetMs(guessMs - dayMs), this.offsetMs(guessMs + dayMs)];
    const candidates = offsets.map((offset) => guessMs - offset);
    const exact = candidates.filter((ms) => ms + this.offsetMs(ms) === guessMs);
    if (exact.length > 0) return Math.min(...exact);
    return this.#changeMs(Math.min(...candidates), Math.max(...candidates));
  }

  /** The first instant after `fromMs`, up to `toMs`, that has the later offset. */
  #changeMs(fromMs: number, toMs: number): number {
    let low = fromMs;
    let high = toMs;
    const laterMs = this.offsetMs(high);
    while (high - low > 1_000) {
      const middle = low + Math.floor((high - low) / 2_000) * 1_000;
      if (this.offsetMs(middle) === laterMs) high = middle;
      else low = middle;
    }
    return high;
  }
}
