import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LimitUnit } from "../../../../src/core/limits/limit.js";
import { calendarWindows } from "../../../../src/decide/rate-limit/calendar.js";
import { epochUsOf, isoTextOf } from "../../../support/calendar-time.js";
import { propertyRuns } from "../../../support/seeds.js";

function edges(unit: LimitUnit, timeZone: string, now: string): readonly string[] {
  const { startUs, endUs, nextEndUs } = calendarWindows(unit, timeZone, epochUsOf(now));
  return [startUs, endUs, nextEndUs].map(isoTextOf);
}

describe("calendarWindows()", () => {
  it.each<{ unit: LimitUnit; zone: string; now: string; is: readonly string[] }>([
    {
      unit: "month",
      zone: "UTC",
      now: "2024-02-29T23:59:59Z",
      is: ["2024-02-01", "2024-03-01", "2024-04-01"].map((day) => `${day}T00:00:00.000Z`),
    },
    {
      unit: "year",
      zone: "Europe/Stockholm",
      now: "2024-12-31T22:59:59Z",
      is: ["2023-12-31T23:00:00.000Z", "2024-12-31T23:00:00.000Z", "2025-12-31T23:00:00.000Z"],
    },
    {
      // A Sunday evening there is Monday already in UTC.
      unit: "week",
      zone: "America/New_York",
      now: "2024-06-10T03:00:00Z",
      is: ["2024-06-03T04:00:00.000Z", "2024-06-10T04:00:00.000Z", "2024-06-17T04:00:00.000Z"],
    },
    {
      // Clocks go back on this day: it has 25 hours.
      unit: "day",
      zone: "Europe/Stockholm",
      now: "2024-10-27T12:00:00Z",
      is: ["2024-10-26T22:00:00.000Z", "2024-10-27T23:00:00.000Z", "2024-10-28T23:00:00.000Z"],
    },
    {
      // Midnight is skipped: clocks went from 23:59 to 01:00.
      unit: "day",
      zone: "Africa/Cairo",
      now: "2024-04-26T12:00:00Z",
      is: ["2024-04-25T22:00:00.000Z", "2024-04-26T21:00:00.000Z", "2024-04-27T21:00:00.000Z"],
    },
    {
      // Midnight comes twice: the day begins with the first.
      unit: "day",
      zone: "America/Havana",
      now: "2024-11-03T12:00:00Z",
      is: ["2024-11-03T04:00:00.000Z", "2024-11-04T05:00:00.000Z", "2024-11-05T05:00:00.000Z"],
    },
    {
      unit: "hour",
      zone: "Asia/Kolkata",
      now: "2024-06-10T03:45:00Z",
      is: ["2024-06-10T03:30:00.000Z", "2024-06-10T04:30:00.000Z", "2024-06-10T05:30:00.000Z"],
    },
  ])("knows a $unit in $zone at $now", ({ unit, zone, now, is }) => {
    expect(edges(unit, zone, now)).toEqual(is);
  });

  it("gives windows that follow one another without gaps, and hold the time they are of", () => {
    const zones = ["UTC", "Europe/Stockholm", "America/Havana", "Asia/Kathmandu", "Africa/Cairo"];
    const units: readonly LimitUnit[] = ["hour", "day", "week", "month", "year"];
    const nowMs = fc.integer({ min: 631_152_000_000, max: 2_840_140_800_000 });
    fc.assert(
      fc.property(fc.constantFrom(...units), fc.constantFrom(...zones), nowMs, (unit, zone, ms) => {
        const { startUs, endUs, nextEndUs } = calendarWindows(unit, zone, ms * 1_000);
        expect(startUs <= ms * 1_000 && ms * 1_000 < endUs && endUs < nextEndUs).toBe(true);
        for (const insideUs of [startUs, endUs - 1]) {
          expect(calendarWindows(unit, zone, insideUs)).toEqual({ startUs, endUs, nextEndUs });
        }
        expect(calendarWindows(unit, zone, endUs).startUs).toBe(endUs);
      }),
      propertyRuns(200),
    );
  });
});
