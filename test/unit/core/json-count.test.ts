import { describe, expect, it } from "vitest";
import { countJson, isLeanJson } from "../../../src/core/json-count.js";

describe("countJson()", () => {
  it.each([
    ["7", 0, 0],
    ["[]", 1, 1],
    ['{"a":[1,{}],"b":"c"}', 3, 5],
    ['"[{,"', 0, 0],
    ['["\\"[",[]]', 2, 3],
    ['["\\\\",[]]', 2, 3],
    ['"[[[', 0, 0],
    ["]]}{", 1, 1],
  ])("finds in %s %i lists and objects, and %i values", (text, containers, values) => {
    expect(countJson(text)).toEqual({ containers, values });
  });
});

describe("isLeanJson()", () => {
  it("takes a list or object for each eight characters, and 64", () => {
    const listed = (unit: string, count: number) => `[${`${unit},`.repeat(count - 1)}${unit}]`;
    expect(isLeanJson(listed('["","a"]', 10_000))).toBe(true);
    expect(isLeanJson(listed("[]", 10_000))).toBe(false);
    expect(isLeanJson("[".repeat(73))).toBe(true);
    expect(isLeanJson("[".repeat(74))).toBe(false);
  });
});
