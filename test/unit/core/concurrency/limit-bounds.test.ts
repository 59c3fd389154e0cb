import { describe, expect, it } from "vitest";
import { withinBounds } from "../../../../src/core/concurrency/limit-bounds.js";

describe("withinBounds()", () => {
  it.each([
    { value: 7.5, min: 2, max: 10, within: 7.5 },
    { value: 1, min: 2, max: 10, within: 2 },
    { value: 11, min: 2, max: 10, within: 10 },
    { value: 5, min: 20, max: 10, within: 20 },
    { value: -3, min: 0, max: 10, within: 1 },
  ])("makes $within of $value between $min and $max", ({ value, min, max, within }) => {
    expect(withinBounds({ initial: 1, min, max }, value)).toBe(within);
  });
});
