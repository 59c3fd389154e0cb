import { describe, expect, it } from "vitest";
import { parsePeriod, periodSecondsMax, unitOfPeriod } from "../../../../src/policy/text/period.js";

describe("parsePeriod()", () => {
  it.each([
    { text: "1s", seconds: 1 },
    { text: "10s", seconds: 10 },
    { text: "5m", seconds: 300 },
    { text: "1h30m", seconds: 5_400 },
    { text: "1d", seconds: 86_400 },
    { text: "2w", seconds: 1_209_600 },
    { text: "1w1d1h1m1s", seconds: 604_800 + 86_400 + 3_600 + 60 + 1 },
    { text: "90m", seconds: 5_400 },
    { text: "007s", seconds: 7 },
    { text: "0h5s", seconds: 5 },
    { text: "9999999999s", seconds: 9_999_999_999 },
  ])("reads $text as $seconds s", ({ text, seconds }) => {
    expect(parsePeriod(text)).toEqual({ kind: "period", seconds });
  });

  it.each([
    ["nothing", ""],
    ["zero", "0s"],
    ["no letter", "10"],
    ["no number", "s"],
    ["an unknown letter", "10y"],
    ["milliseconds", "500ms"],
    ["a fraction", "1.5h"],
    ["a sign", "-5s"],
    ["a space", "1h 30m"],
    ["smaller before larger", "30m1h"],
    ["a letter twice", "1h1h"],
    ["capitals", "5M"],
    ["other digits", "٥s"],
    ["more digits than a number may have", "99999999999s"],
  ])("does not read %s", (_, text) => {
    expect(parsePeriod(text)).toEqual({ kind: "unreadable" });
  });
});

describe("unitOfPeriod()", () => {
  it.each([
    { seconds: 1, unit: "second", unitMultiplier: 1 },
    { seconds: 59, unit: "second", unitMultiplier: 59 },
    { seconds: 60, unit: "minute", unitMultiplier: 1 },
    { seconds: 5_400, unit: "minute", unitMultiplier: 90 },
    { seconds: 7_200, unit: "hour", unitMultiplier: 2 },
    { seconds: 1_209_600, unit: "day", unitMultiplier: 14 },
    { seconds: periodSecondsMax, unit: "day", unitMultiplier: 3_650 },
  ])("gives $seconds s as $unitMultiplier $unit", ({ seconds, ...expected }) => {
    expect(unitOfPeriod(seconds)).toEqual(expected);
  });
});
