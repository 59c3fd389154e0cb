import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { diffLines } from "../../../../src/core/collections/line-diff.js";
import { propertyRuns } from "../../../support/seeds.js";

const text = fc.array(fc.constantFrom("a", "b", "c", "  d"), { minLength: 1, maxLength: 12 });

describe("two texts compared", () => {
  it("numbers what was removed in the one and what was added in the other", () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        const lines = diffLines(before.join("\n"), after.join("\n"));
        for (const { kind, text: own, line } of lines) {
          if (kind === "removed") expect(before[line - 1]).toBe(own);
          if (kind === "added" || kind === "same") expect(after[line - 1]).toBe(own);
        }
        const count = (kind: string): number => lines.filter((one) => one.kind === kind).length;
        expect(before.length - count("removed")).toBe(after.length - count("added"));
      }),
      propertyRuns(100),
    );
  });

  it("says nothing of equal texts, and leaves out what is far from a difference", () => {
    expect(diffLines("a\nb", "a\nb")).toEqual([]);
    const before = Array.from({ length: 20 }, (_, i) => String(i));
    const after = before.map((line) => (line === "10" ? "ten" : line));
    const kinds = diffLines(before.join("\n"), after.join("\n")).map(({ kind }) => kind);
    const same = ["same", "same", "same"];
    expect(kinds).toEqual(["gap", ...same, "removed", "added", ...same, "gap"]);
  });
});
