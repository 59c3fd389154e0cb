import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatTimestamp, parseTimestampUs } from "../../../../src/core/base/timestamp.js";
import { propertyRuns } from "../../../support/seeds.js";

describe("parseTimestampUs()", () => {
  it.each([
    ["1970-01-01T00:00:00Z", 0],
    ["2026-01-05T08:00:00.1234567Z", 1_767_600_000_123_456],
    ["2026-01-05 08:00:00", 1_767_600_000_000_000],
    ["2026-01-05T09:30:00+01:30", 1_767_600_000_000_000],
    ["2026-01-04T23:00:00-0900", 1_767_600_000_000_000],
    ["2024-02-29T00:00:00Z", 1_709_164_800_000_000],
    ["1767600000.5", 1_767_600_000_500_000],
  ])("reads %s", (text, timeUs) => {
    expect(parseTimestampUs(text)).toBe(timeUs);
  });

  it.each([
    "",
    "-",
    "yesterday",
    "2026-02-29T00:00:00Z",
    "2026-12-32T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "2026-06-99T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:61:00Z",
    "2026-01-01",
    "17676000000000",
  ])("does not read %j", (text) => {
    expect(parseTimestampUs(text)).toBeUndefined();
  });
});

describe("formatTimestamp()", () => {
  it("writes UTC in whole seconds", () => {
    expect(formatTimestamp(1_767_600_000_999_999)).toBe("2026-01-05T08:00:00Z");
    expect(formatTimestamp(951_868_799_000_000)).toBe("2000-02-29T23:59:59Z");
  });

  it("writes what is read as the same second", () => {
    // Microseconds are exact until the year 2255.
    const secondsMax = 9_000_000_000;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: secondsMax }), fc.nat(999_999), (seconds, us) => {
        const text = formatTimestamp(seconds * 1_000_000 + us);
        expect(parseTimestampUs(text)).toBe(seconds * 1_000_000);
      }),
      propertyRuns(100),
    );
  });
});
