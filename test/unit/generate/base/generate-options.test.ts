import { describe, expect, it } from "vitest";
import {
  isAtLeastVersion,
  isNamespace,
  parseMinorVersion,
  versionRanges,
} from "../../../../src/generate/base/generate-options.js";

describe("parseMinorVersion()", () => {
  it.each([
    ["1.40", 40],
    ["v1.30", 30],
    ["1.35.7", 35],
    ["1.29", undefined],
    ["1.41", undefined],
    ["2.35", undefined],
    ["0.35", undefined],
    ["1", undefined],
    ["1.35-dev", undefined],
    ["1.35.x", undefined],
    ["", undefined],
    [" 1.35", undefined],
    ["1.99999", undefined],
  ])("reads %o as 1.%s", (text, minor) => {
    const wanted = minor === undefined ? undefined : { major: 1, minor };
    expect(parseMinorVersion(text, versionRanges.envoyVersion)).toEqual(wanted);
  });
});

describe("isAtLeastVersion()", () => {
  it("counts by numbers, major ones first", () => {
    const least = { major: 1, minor: 9 };
    expect(isAtLeastVersion({ major: 1, minor: 10 }, least)).toBe(true);
    expect(isAtLeastVersion({ major: 1, minor: 9 }, least)).toBe(true);
    expect(isAtLeastVersion({ major: 1, minor: 8 }, least)).toBe(false);
    expect(isAtLeastVersion({ major: 2, minor: 0 }, least)).toBe(true);
    expect(isAtLeastVersion({ major: 0, minor: 99 }, least)).toBe(false);
  });
});

describe("isNamespace()", () => {
  it.each([
    ["headgate", true],
    ["a-1", true],
    ["a".repeat(63), true],
    ["a".repeat(64), false],
    ["", false],
    ["-a", false],
    ["a-", false],
    ["A", false],
    ["a.b", false],
    ["../a", false],
  ])("takes %o: %s", (text, isRight) => {
    expect(isNamespace(text)).toBe(isRight);
  });
});
