import { retryAfterSecondsMax } from "../admission/retry-after.js";
import { parseTimestampUs } from "../base/timestamp.js";

/** Maximum wait of a service's hint, in milliseconds: the same as Headgate's own. */
export const hintMsMax = retryAfterSecondsMax * 1_000;

/** Maximum length of a hint that is read, in characters: dates have 33 at most. */
const hintCharsMax = 64;

const wholeSeconds = /^[0-9]+$/;

/**
 * Parses `Retry-After` to milliseconds from now: seconds, or a date in any of the three forms,
 * where a past date is 0. At most 2^31 - 1 seconds. Undefined for all else: negative or fractional
 * numbers, several values, or a day that does not exist.
 *
 * Example: `120` is 120,000; `Fri, 27 Nov 2026 08:00:10 GMT` is 10,000 at 08:00.
 *
 * @param epochMs the wall time now, in milliseconds since 1970
 *
 * Source: RFC 9110, sections 10.2.3 and 5.6.7.
 */
export function parseRetryAfter(text: string, epochMs: number): number | undefined {
  if (text.length > hintCharsMax) return undefined;
  const value = text.trim();
  if (wholeSeconds.test(value)) return Math.min(Number(value) * 1_000, hintMsMax);
  const dateMs = parseHttpDate(value, epochMs);
  if (dateMs === undefined) return undefined;
  return Math.min(Math.max(0, dateMs - epochMs), hintMsMax);
}

/** A service's answer about retries of a gRPC call: a wait in milliseconds, or `never`. */
export type Pushback = number | "never";

const pushback = /^(?:0|[1-9][0-9]{0,9})$/;

/** Maximum signed 32-bit number. */
const pushbackMsMax = 2_147_483_647;

/**
 * Parses `grpc-retry-pushback-ms`: a wait in milliseconds from 0. A negative number, and any text
 * that is not a 32-bit number, several values included, ask for no retry at all.
 *
 * Source: gRFC A6, "Pushback".
 */
export function parsePushback(text: string): Pushback {
  const ms = pushback.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  return ms <= pushbackMsMax ? ms : "never";
}

const months = "JanFebMarAprMayJunJulAugSepOctNovDec";

/** `Sun, 06 Nov 1994 08:49:37 GMT`, the form to send. */
const imfDate = /^[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d:\d\d:\d\d) GMT$/;

/** `Sunday, 06-Nov-94 08:49:37 GMT`, of RFC 850. */
const rfc850Date = /^[A-Z][a-z]{5,8}, (\d\d)-([A-Z][a-z]{2})-(\d\d) (\d\d:\d\d:\d\d) GMT$/;

/** `Sun Nov  6 08:49:37 1994`, of C's asctime(). */
const asctimeDate = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \d]\d) (\d\d:\d\d:\d\d) (\d{4})$/;

/** Parses an HTTP-date to milliseconds since 1970. The weekday is not checked. */
function parseHttpDate(text: string, epochMs: number): number | undefined {
  const imf = imfDate.exec(text);
  if (imf !== null) {
    const [, day = "", month = "", year = "", time = ""] = imf;
    return epochMsOf({ year, month, day, time });
  }
  const rfc850 = rfc850Date.exec(text);
  if (rfc850 !== null) {
    const [, day = "", month = "", year = "", time = ""] = rfc850;
    return nearestCentury({ year, month, day, time }, epochMs);
  }
  const [, month = "", day = "", time = "", year = ""] = asctimeDate.exec(text) ?? [];
  return epochMsOf({ year, month, day: day.replace(" ", "0"), time });
}

interface DateParts {
  readonly year: string;
  readonly month: string;
  readonly day: string;
  readonly time: string;
}

function epochMsOf({ year, month, day, time }: DateParts): number | undefined {
  const at = months.indexOf(month);
  if (at < 0) return undefined;
  const number = String(at / 3 + 1).padStart(2, "0");
  const us = parseTimestampUs(`${year}-${number}-${day}T${time}Z`);
  return us === undefined ? undefined : us / 1_000;
}

/** Completes a date with a two-digit year by the year within 50 years from now. */
function nearestCentury(parts: DateParts, epochMs: number): number | undefined {
  const nowYear = 1970 + Math.floor(epochMs / yearMs);
  const aheadYears = (((Number(parts.year) - nowYear) % 100) + 100) % 100;
  const year = nowYear + (aheadYears > 50 ? aheadYears - 100 : aheadYears);
  return epochMsOf({ ...parts, year: String(year) });
}

/** Mean length of a Gregorian year, in milliseconds. */
const yearMs = 365.2425 * 86_400_000;
