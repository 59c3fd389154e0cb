import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { diffTexts, shownLinesMax } from "../../../../src/cli/terminal/text-diff.js";
import { comparedPairsMax } from "../../../../src/core/collections/line-diff.js";
import { propertyRuns } from "../../../support/seeds.js";

describe("diffTexts()", () => {
  it("shows what changes, with some lines around it", () => {
    const before = ["1", "2", "3", "4", "5", "6", "7", "8", "9"].join("\n");
    const after = ["1", "2", "3", "4", "five", "5.5", "6", "7", "8", "9"].join("\n");
    expect(diffTexts(before, after)).toEqual([
      ...["...", "  2", "  3", "  4", "- 5", "+ five", "+ 5.5", "  6", "  7", "  8", "..."],
    ]);
  });

  it("shows nothing where nothing changes", () => {
    expect(diffTexts("a\nb", "a\nb")).toEqual([]);
    expect(diffTexts("", "")).toEqual([]);
  });

  it("shows a bounded number of lines", () => {
    const lines = Array.from({ length: shownLinesMax + 5 }, (_, i) => String(i));
    const shown = diffTexts("", lines.join("\n"));
    expect(shown).toHaveLength(shownLinesMax + 1);
    expect(shown.at(-1)).toBe("... and 6 more lines");
  });

  it("takes everything between as changed where there is too much to compare", () => {
    const count = Math.ceil(Math.sqrt(comparedPairsMax)) + 1;
    const [before, after] = ["a", "b"].map((name) =>
      Array.from({ length: count }, (_, i) => (i === 5 ? "same" : `${name}${i}`)).join("\n"),
    );
    const shown = diffTexts(before ?? "", after ?? "");
    expect(shown.slice(0, 6)).toEqual(["- a0", "- a1", "- a2", "- a3", "- a4", "- same"]);
  });

  it("leads from the one text to the other", () => {
    const text = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 7 });
    fc.assert(
      fc.property(text, text, (before, after) => {
        // Few enough lines that none is left out.
        const lines = diffTexts(before.join("\n"), after.join("\n"));
        if (lines.length === 0) return;
        const shown = lines.filter((line) => line !== "...");
        const kept = (sign: string): readonly string[] =>
          shown.filter((line) => !line.startsWith(sign)).map((line) => line.slice(2));
        if (shown.length === lines.length) {
          expect(kept("+")).toEqual(before.length === 0 ? [""] : before);
          expect(kept("-")).toEqual(after.length === 0 ? [""] : after);
        }
      }),
      propertyRuns(100),
    );
  });
});
