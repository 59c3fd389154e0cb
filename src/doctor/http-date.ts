import { daysSince1970 } from "../core/base/calendar-date.js";

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const pattern = /^[A-Z][a-z]{2}, (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/;

/**
 * Reads the header `date` in milliseconds since 1970; undefined where it is none.
 *
 * Source: RFC 9110 section 5.6.7, IMF-fixdate, which all servers send.
 */
export function parseHttpDateMs(text: string): number | undefined {
  const [, day, name = "", year, hours, minutes, seconds] = pattern.exec(text) ?? [];
  const month = months.indexOf(name) + 1;
  if (month === 0) return undefined;
  const days = daysSince1970({ year: Number(year), month, day: Number(day) });
  const ofDay = (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds);
  return (days * 86_400 + ofDay) * 1_000;
}
