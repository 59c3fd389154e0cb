import { describe, expect, it } from "vitest";
import { findNearestName, nearestCharsMax } from "../../../../src/policy/text/nearest-name.js";

const names = ["unit", "requests_per_unit", "unlimited", "name", "burst"];

describe("findNearestName()", () => {
  it.each([
    { mistake: "a letter missing", text: "reqests_per_unit", nearest: "requests_per_unit" },
    { mistake: "a letter too many", text: "unitt", nearest: "unit" },
    { mistake: "a letter replaced", text: "nane", nearest: "name" },
    { mistake: "neighbours swapped", text: "brust", nearest: "burst" },
    { mistake: "other case", text: "UNLIMITED", nearest: "unlimited" },
    { mistake: "a plural", text: "names", nearest: "name" },
  ])("finds the name meant with $mistake", ({ text, nearest }) => {
    expect(findNearestName(text, names)).toBe(nearest);
  });

  it("prefers the name with the fewest edits", () => {
    expect(findNearestName("rate_limit", ["rate_limits", "rate_limit"])).toBe("rate_limit");
  });

  it("takes the first of equally near names", () => {
    expect(findNearestName("bat", ["cat", "hat"])).toBe("cat");
  });

  it("finds nothing when every name is far", () => {
    expect(findNearestName("colour", names)).toBeUndefined();
    expect(findNearestName("", names)).toBeUndefined();
  });

  it("does not look for texts longer than any misspelt name", () => {
    const longName = "n".repeat(nearestCharsMax + 1);
    expect(findNearestName(longName, [longName])).toBeUndefined();
    expect(findNearestName(longName.slice(1), [longName])).toBe(longName);
  });
});
