import { describe, expect, it } from "vitest";
import {
  formatProblem,
  formatProblems,
  type Problem,
  problemRows,
  quotedCharsMax,
  quoteText,
} from "../../../../src/policy/problems/problem.js";

const problem: Problem = {
  file: "shop.yaml",
  line: 12,
  column: 13,
  id: "HG142",
  message: '"minut" is not a unit',
  excerpt: "      unit: minut",
  caret: { start: 12, length: 5 },
};

describe("formatProblem()", () => {
  it("begins with the place, then the id and the message, then the marked line", () => {
    expect(formatProblem(problem)).toBe(
      [
        'shop.yaml:12:13: HG142 "minut" is not a unit',
        "  12 |       unit: minut",
        "     |             ^^^^^",
      ].join("\n"),
    );
  });

  it("ends with what was expected and the nearest right text", () => {
    const lines = formatProblem({ ...problem, expected: "a unit", suggestion: "minute" });
    expect(lines.split("\n").slice(3)).toEqual(["  expected: a unit", "  did you mean: minute"]);
  });

  it("shows control characters of a file's name as a replacement", () => {
    const [first] = formatProblem({ ...problem, file: "a\n\u001b[2Jb" }).split("\n");
    expect(first).toMatch(/^a\ufffd\ufffd\[2Jb:12:13: /);
  });
});

describe("formatProblems()", () => {
  it("says how many problems are not described", () => {
    const text = formatProblems({ problems: [problem, problem], unreportedCount: 7 });
    expect(text.split("\n")).toHaveLength(7);
    expect(text).toMatch(/\nand 7 more$/);
  });

  it("is empty without problems", () => {
    expect(formatProblems({ problems: [], unreportedCount: 0 })).toBe("");
  });
});

describe("quoteText()", () => {
  it("shortens a long text", () => {
    expect(quoteText("x".repeat(quotedCharsMax))).toBe(`"${"x".repeat(quotedCharsMax)}"`);
    expect(quoteText("x".repeat(1_000_000))).toBe(`"${"x".repeat(quotedCharsMax)}..."`);
  });

  it("shows what a terminal would act on as a replacement", () => {
    expect(quoteText("a\u001b[31m\r\nb\u202ec")).toBe('"a\ufffd[31m\ufffd\ufffdb\ufffdc"');
  });
});

describe("problemRows", () => {
  it("has an id of its own kind, a title and a remedy in every row", () => {
    for (const [id, { title, remedy }] of Object.entries(problemRows)) {
      expect(id).toMatch(/^HG[12]\d\d$/);
      expect(title).toMatch(/^[A-Z].*\.$/);
      expect(remedy).toMatch(/^[A-Z].*\.$/);
    }
  });
});
