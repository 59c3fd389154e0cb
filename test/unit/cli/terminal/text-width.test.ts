import { describe, expect, it } from "vitest";
import { textWidth, truncateText, wrapText } from "../../../../src/cli/terminal/text-width.js";

describe("textWidth()", () => {
  it.each([
    ["user=ann", 8],
    ["└─ █░ ✓", 7],
    ["名前", 4],
    ["a\u0301e\u20dd", 2],
    ["か\u3099", 2],
    ["🚀x", 3],
    ["ｱ", 1],
    ["𗀀", 2],
  ])("gives %s %i columns", (text, columns) => {
    expect(textWidth(text)).toBe(columns);
  });
});

describe("cutText()", () => {
  it("ends with an ellipsis what does not fit, and cuts no wide character in two", () => {
    expect(truncateText("user=ann", 8)).toBe("user=ann");
    expect(truncateText("user=annie", 8)).toBe("user=an…");
    expect(truncateText("名前名前", 6)).toBe("名前…");
  });
});

describe("wrapText()", () => {
  it("breaks at spaces, and within words that are longer than a line", () => {
    expect(wrapText("not user: it is another", 12)).toEqual(["not user: it", "is another"]);
    expect(wrapText("key plan=free,user=ann", 10)).toEqual(["key plan=f", "ree,user=a", "nn"]);
    expect(wrapText("名前名前 名前", 9)).toEqual(["名前名前", "名前"]);
  });

  it("leaves what fits, and all of it where there is no end of a line", () => {
    expect(wrapText("", 20)).toEqual([""]);
    expect(wrapText("one two", 7).join()).toBe("one two");
    const long = "word ".repeat(100).trimEnd();
    expect(wrapText(long, Number.POSITIVE_INFINITY)).toEqual([long]);
  });

  it("takes as many lines as it may, and ends the last one with an ellipsis", () => {
    const lines = wrapText("x".repeat(1_000), 10, 3);
    expect(lines).toEqual(["x".repeat(10), "x".repeat(10), `${"x".repeat(9)}…`]);
  });

  it("gives a window that is too small eight columns", () => {
    expect(wrapText("user=ann,plan=free", -3)).toEqual(["user=ann", ",plan=fr", "ee"]);
  });
});
