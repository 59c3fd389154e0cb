import { describe, expect, it } from "vitest";
import { formatDuration, parseDurationMs } from "../../../../src/policy/text/duration.js";

describe("parseDurationMs()", () => {
  it.each([
    ["0s", 0],
    ["5ms", 5],
    ["2s", 2_000],
    ["1m", 60_000],
    ["1h", 3_600_000],
    ["1d", 86_400_000],
    ["1m30s", 90_000],
    ["1d2h3m4s5ms", 93_784_005],
    ["100ms", 100],
    ["90s", 90_000],
    ["999999999d", 86_399_999_913_600_000],
  ])("reads %s", (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms);
  });

  it.each([
    "",
    "5",
    "ms",
    "1.5s",
    "2 s",
    "-1s",
    "1s1m",
    "1s1s",
    "1us",
    "1S",
    "1ms1s",
    "9999999999s",
  ])("refuses %s", (text) => {
    expect(parseDurationMs(text)).toBeUndefined();
  });
});

describe("formatDuration()", () => {
  it.each(["0s", "5ms", "1m30s", "1d2h3m4s5ms"])("writes what is read as %s", (text) => {
    expect(formatDuration(parseDurationMs(text) ?? -1)).toBe(text);
  });
});
