import { describe, expect, it } from "vitest";
import { isJsonObject } from "../../../../src/core/base/json.js";

describe("isJsonObject()", () => {
  it.each([
    [{}, true],
    [{ a: 1 }, true],
    [[], false],
    [null, false],
    [undefined, false],
    ["a", false],
    [1, false],
  ])("of %j is %s", (value, isObject) => {
    expect(isJsonObject(value)).toBe(isObject);
  });
});
