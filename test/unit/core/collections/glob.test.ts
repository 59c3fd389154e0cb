import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { globMatches, parseGlob } from "../../../../src/core/collections/glob.js";
import { propertyRuns } from "../../../support/seeds.js";

/** The definition: a star takes any number of characters, everything else itself. */
function matchesSlowly(pattern: string, text: string): boolean {
  if (pattern === "") return text === "";
  const rest = pattern.slice(1);
  if (pattern.startsWith("*")) {
    return matchesSlowly(rest, text) || (text !== "" && matchesSlowly(pattern, text.slice(1)));
  }
  return text.startsWith(pattern.slice(0, 1)) && matchesSlowly(rest, text.slice(1));
}

function matches(pattern: string, text: string): boolean {
  return globMatches(parseGlob(pattern), text);
}

function shortTexts(alphabet: readonly string[], maxLength: number): fc.Arbitrary<string> {
  return fc.array(fc.constantFrom(...alphabet), { maxLength }).map((parts) => parts.join(""));
}

describe("globMatches()", () => {
  it.each([
    { pattern: "foo*baz", text: "foobaz", isMatch: true },
    { pattern: "foo*baz", text: "foo-bar-baz", isMatch: true },
    { pattern: "foo*baz", text: "foobazx", isMatch: false },
    { pattern: "foo*baz", text: "xfoobaz", isMatch: false },
    { pattern: "*", text: "", isMatch: true },
    { pattern: "*", text: "anything at all", isMatch: true },
    { pattern: "**", text: "", isMatch: true },
    { pattern: "aba*aba", text: "aba", isMatch: false },
    { pattern: "aba*aba", text: "ababa", isMatch: false },
    { pattern: "aba*aba", text: "abaaba", isMatch: true },
    { pattern: "a*ab*b", text: "aabb", isMatch: true },
    { pattern: "a*ab*b", text: "aab", isMatch: false },
    { pattern: "*ab*ab", text: "ab", isMatch: false },
    { pattern: "*ab*ab", text: "abab", isMatch: true },
    { pattern: "/v?/[a]*", text: "/v?/[a]b", isMatch: true },
    { pattern: "/v?/[a]*", text: "/v1/ab", isMatch: false },
    { pattern: "a.*", text: "ab", isMatch: false },
    { pattern: "\\*", text: "\\anything", isMatch: true },
    { pattern: "a", text: "a", isMatch: true },
    { pattern: "a", text: "A", isMatch: false },
    { pattern: "", text: "", isMatch: true },
    { pattern: "", text: "a", isMatch: false },
    { pattern: "é*", text: "é😀", isMatch: true },
  ])("$pattern on $text: $isMatch", ({ pattern, text, isMatch }) => {
    expect(matches(pattern, text)).toBe(isMatch);
    expect(matchesSlowly(pattern, text)).toBe(isMatch);
  });

  it("equals the definition", () => {
    const property = fc.property(
      shortTexts(["*", "*", "a", "b"], 8),
      shortTexts(["a", "b"], 10),
      (pattern, text) => matches(pattern, text) === matchesSlowly(pattern, text),
    );
    fc.assert(property, propertyRuns(1_000));
  });

  it("equals the definition on texts made to match, and nearly", () => {
    const fillers = shortTexts(["a", "b", "c"], 3);
    const property = fc.property(
      shortTexts(["*", "a", "b"], 8),
      fc.array(fillers, { minLength: 8, maxLength: 8 }),
      fillers,
      (pattern, fills, tail) => {
        const made = pattern.split("*").reduce((text, part, i) => text + (fills[i] ?? "") + part);
        expect(matches(pattern, made)).toBe(matchesSlowly(pattern, made));
        expect(matches(pattern, made + tail)).toBe(matchesSlowly(pattern, made + tail));
      },
    );
    fc.assert(property, propertyRuns(1_000));
  });

  it.each([
    { name: "many stars, no end", pattern: `${"a*".repeat(5_000)}b`, text: "a".repeat(10_240) },
    { name: "many stars, no place", pattern: `*${"a*".repeat(50)}b*`, text: "a".repeat(10_240) },
    { name: "a long literal", pattern: `*${"a".repeat(500)}b*`, text: "a".repeat(10_240) },
    { name: "a long literal's end", pattern: `*b${"a".repeat(500)}*`, text: "a".repeat(10_240) },
    { name: "halves", pattern: `*${"ab".repeat(99)}c*`, text: "ab".repeat(5_120) },
  ])(
    "ends in time on hostile input: $name",
    ({ pattern, text }) => {
      expect(matches(pattern, text)).toBe(false);
      // Each takes under 5 ms; a search that goes back takes longer than anyone would wait.
    },
    1_000,
  );
});
