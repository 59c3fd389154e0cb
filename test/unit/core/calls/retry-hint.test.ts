import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatTimestamp, parseTimestampUs } from "../../../../src/core/base/timestamp.js";
import {
  hintMsMax,
  parsePushback,
  parseRetryAfter,
} from "../../../../src/core/calls/retry-hint.js";
import { anyCodePoint } from "../../../support/any-code-point.js";
import { propertyRuns } from "../../../support/seeds.js";

/** Milliseconds since 1970. */
function epochMs(text: string): number {
  const us = parseTimestampUs(text);
  if (us === undefined) throw new Error(`${text} is no time`);
  return us / 1_000;
}

/** A Friday. */
const nowMs = epochMs("2026-11-27T08:00:00Z");

const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const weekdays = "Thu Fri Sat Sun Mon Tue Wed".split(" ");

/** A time as a service writes it. */
function httpDate(seconds: number): string {
  const [date = "", time] = formatTimestamp(seconds * 1e6).split(/[TZ]/);
  const [year, month, day] = date.split("-");
  const weekday = weekdays[Math.floor(seconds / 86_400) % 7];
  return `${weekday}, ${day} ${months[Number(month) - 1]} ${year} ${time} GMT`;
}

describe("parseRetryAfter()", () => {
  it.each([
    { text: "120", ms: 120_000 },
    { text: "0", ms: 0 },
    { text: " 5 ", ms: 5_000 },
    { text: "007", ms: 7_000 },
    { text: "2147483647", ms: hintMsMax },
    { text: "99999999999999999999", ms: hintMsMax },
    { text: "Fri, 27 Nov 2026 08:00:10 GMT", ms: 10_000 },
    { text: "Friday, 27-Nov-26 08:00:10 GMT", ms: 10_000 },
    { text: "Fri Nov 27 08:00:10 2026", ms: 10_000 },
    { text: "Tue Dec  1 08:00:00 2026", ms: 4 * 86_400_000 },
    { text: "Wed, 29 Feb 2028 08:00:00 GMT", ms: epochMs("2028-02-29T08:00:00Z") - nowMs },
    { text: "Fri, 31 Dec 9999 23:59:59 GMT", ms: hintMsMax },
    { text: "Fri, 27 Nov 2026 07:59:59 GMT", ms: 0 },
    { text: "Sun, 06 Nov 1994 08:49:37 GMT", ms: 0 },
    // Two digits are of the year within 50 years from now: 1994, and 2076.
    { text: "Sunday, 06-Nov-94 08:49:37 GMT", ms: 0 },
    { text: "Friday, 27-Nov-76 08:00:00 GMT", ms: epochMs("2076-11-27T08:00:00Z") - nowMs },
    { text: "Friday, 27-Nov-77 08:00:00 GMT", ms: 0 },
  ])("reads $text as $ms ms", ({ text, ms }) => {
    expect(parseRetryAfter(text, nowMs)).toBe(Math.min(ms, hintMsMax));
  });

  it.each([
    "",
    "-5",
    "+5",
    "1.5",
    "1e3",
    "0x10",
    "NaN",
    "Infinity",
    "5, 10",
    "5;10",
    "five",
    "Fri, 27 Nov 2026 08:00:10 GMT, Fri, 27 Nov 2026 08:00:20 GMT",
    "Fri, 31 Nov 2026 08:00:10 GMT",
    "Fri, 00 Nov 2026 08:00:10 GMT",
    "Fri, 27 anF 2026 08:00:10 GMT",
    "Fri, 27 Anf 2026 08:00:10 GMT",
    "Fri, 27 Nov 2026 25:00:10 GMT",
    "Fri, 27 Nov 2026 08:00:10 CET",
    "2026-11-27T08:00:10Z",
  ])("reads nothing of %j", (text) => {
    expect(parseRetryAfter(text, nowMs)).toBeUndefined();
  });

  it("does not read a value of 10 MB", () => {
    expect(parseRetryAfter("9".repeat(10_000_000), nowMs)).toBeUndefined();
    expect(parseRetryAfter("9".repeat(64), nowMs)).toBe(hintMsMax);
    expect(parseRetryAfter("9".repeat(65), nowMs)).toBeUndefined();
  });

  it("knows the century of two digits at its end", () => {
    const atMs = epochMs("2099-12-31T23:59:59Z");
    expect(parseRetryAfter("Friday, 01-Jan-00 00:00:09 GMT", atMs)).toBe(10_000);
  });

  it("reads any date as services write it", () => {
    const untilSeconds = epochMs("9999-12-31T23:59:59Z") / 1_000;
    fc.assert(
      fc.property(fc.nat(untilSeconds), (seconds) => {
        const ms = Math.min(Math.max(0, seconds * 1_000 - nowMs), hintMsMax);
        expect(parseRetryAfter(httpDate(seconds), nowMs)).toBe(ms);
      }),
      propertyRuns(300),
    );
  });

  it("says a time within its bounds, or nothing, of any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCodePoint, maxLength: 80 }), (text) => {
        const ms = parseRetryAfter(text, nowMs);
        expect(ms === undefined || (ms >= 0 && ms <= hintMsMax)).toBe(true);
      }),
      propertyRuns(300),
    );
  });
});

describe("parsePushback()", () => {
  it.each([
    { text: "0", expected: 0 },
    { text: "250", expected: 250 },
    { text: "2147483647", expected: 2_147_483_647 },
    { text: "2147483648", expected: "never" },
    { text: "-1", expected: "never" },
    { text: "-0", expected: "never" },
    { text: "007", expected: "never" },
    { text: "", expected: "never" },
    { text: "1.5", expected: "never" },
    { text: "100, 200", expected: "never" },
    { text: "NaN", expected: "never" },
    { text: "1e3", expected: "never" },
    { text: " 5", expected: "never" },
  ])("reads $text as $expected", ({ text, expected }) => {
    expect(parsePushback(text)).toBe(expected);
  });

  it("does not retry after 10 MB of digits", () => {
    expect(parsePushback("1".repeat(10_000_000))).toBe("never");
  });
});
