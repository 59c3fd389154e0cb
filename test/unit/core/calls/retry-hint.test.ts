import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  hintMsMax,
  parsePushback,
  parseRetryAfter,
} from "../../../../src/core/calls/retry-hint.js";
import { propertyRuns } from "../../../support/seeds.js";

/** 2026-11-27 08:00:00 UTC, a Friday. */
const nowMs = Date.UTC(2026, 10, 27, 8);

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
    { text: "Wed, 29 Feb 2028 08:00:00 GMT", ms: Date.UTC(2028, 1, 29, 8) - nowMs },
    { text: "Fri, 31 Dec 9999 23:59:59 GMT", ms: hintMsMax },
    { text: "Fri, 27 Nov 2026 07:59:59 GMT", ms: 0 },
    { text: "Sun, 06 Nov 1994 08:49:37 GMT", ms: 0 },
    // Two digits are of the year within 50 years from now: 1994, and 2076.
    { text: "Sunday, 06-Nov-94 08:49:37 GMT", ms: 0 },
    { text: "Friday, 27-Nov-76 08:00:00 GMT", ms: Date.UTC(2076, 10, 27, 8) - nowMs },
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
    const atMs = Date.UTC(2099, 11, 31, 23, 59, 59);
    expect(parseRetryAfter("Friday, 01-Jan-00 00:00:09 GMT", atMs)).toBe(10_000);
  });

  it("reads any date as the platform writes it", () => {
    const times = fc.date({ min: new Date(0), max: new Date("9999-12-31"), noInvalidDate: true });
    fc.assert(
      fc.property(times, (time) => {
        const untilMs = Math.floor(time.getTime() / 1_000) * 1_000 - nowMs;
        const ms = Math.min(Math.max(0, untilMs), hintMsMax);
        expect(parseRetryAfter(time.toUTCString(), nowMs)).toBe(ms);
      }),
      propertyRuns(300),
    );
  });

  it("says a time within its bounds, or nothing, of any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 80 }), (text) => {
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
