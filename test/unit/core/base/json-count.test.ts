import { describe, expect, it } from "vitest";
import { isJsonWithin, isLeanJson } from "../../../../src/core/base/json-count.js";

const listed = (unit: string, count: number) => `[${`${unit},`.repeat(count - 1)}${unit}]`;

describe("isJsonWithin()", () => {
  it.each([
    ["7", 0, 0],
    ["[]", 1, 1],
    ['{"a":[1,{}],"b":"c"}', 3, 5],
    ['"[{,"', 0, 0],
    ['["\\"[",[]]', 2, 3],
    ['["\\\\",[]]', 2, 3],
    ['"[[[', 0, 0],
    ["]]}{", 1, 1],
  ])("finds in %s %i lists and objects, and %i values", (text, containersMax, valuesMax) => {
    expect(isJsonWithin(text, { containersMax, valuesMax })).toBe(true);
    expect(isJsonWithin(text, { containersMax, valuesMax: valuesMax - 1 })).toBe(false);
    expect(isJsonWithin(text, { containersMax: containersMax - 1, valuesMax })).toBe(false);
  });
});

describe("isLeanJson()", () => {
  it("takes a list or object for each eight characters, and 64", () => {
    expect(isLeanJson(listed('["","a"]', 10_000))).toBe(true);
    expect(isLeanJson(listed("[]", 10_000))).toBe(false);
    expect(isLeanJson("[".repeat(73))).toBe(true);
    expect(isLeanJson("[".repeat(74))).toBe(false);
  });

  it("takes as many as it says of a text of any length", () => {
    expect(isLeanJson(listed('["longer text"]', 32_767))).toBe(true);
    expect(isLeanJson(listed('["longer text"]', 32_768))).toBe(false);
    expect(isLeanJson(listed("7", 131_072))).toBe(true);
    expect(isLeanJson(listed("7", 131_073))).toBe(false);
  });
});
