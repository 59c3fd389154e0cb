import { describe, expect, it } from "vitest";
import { accountKey, accountOf } from "../../../../src/core/budgets/account-key.js";

const digest = (text: string): string => `d${text.length}`;

describe("accountKey()", () => {
  it.each([
    { values: [], key: "team" },
    { values: [""], key: "team|" },
    { values: ["a", "b"], key: "team|a|b" },
    { values: ["a|b"], key: "team|a%7Cb" },
    { values: ["100%", "a\nb"], key: "team|100%25|a%0Ab" },
    { values: ["%#d257"], key: "team|%25#d257" },
    { values: ["Ärger 🎈"], key: "team|Ärger 🎈" },
  ])("parts $values, and gives them back", ({ values, key }) => {
    expect(accountKey("team", values, digest)).toBe(key);
    expect(accountOf(accountKey("team", values, digest))).toEqual({ budget: "team", values });
  });

  it.each(["x".repeat(257), "\ud800".repeat(257)])("represents a value by its digest", (value) => {
    expect(accountKey("team", [value, "b"], digest)).toBe("team|%#d257|b");
  });

  it("keeps values of 256 characters", () => {
    expect(accountKey("team", ["x".repeat(256)], digest)).toBe(`team|${"x".repeat(256)}`);
  });
});
