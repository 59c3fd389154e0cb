import { describe, expect, it } from "vitest";
import { checkDecisionPaths } from "../../tidy/decision-path.js";
import { parseSource } from "../../tidy/source.js";

const sources = [
  parseSource("src/a.ts", "other.ask(1);"),
  parseSource("src/b.ts", "class B {\n  ask(n: number) {\n    take(n);\n  }\n}"),
  parseSource("src/c.ts", "export function take(n: number) {\n  return n;\n}"),
];

const path = ["`src/a.ts` calls `other.ask`", "`src/b.ts` calls `take`", "`src/c.ts` decides"];

function messagesOf(...items: readonly string[]): readonly string[] {
  const lists = [items, path].map((list) => list.map((item, i) => `${i + 1}. ${item}`).join("\n"));
  return checkDecisionPaths(sources, lists.join("\n\n")).map(({ message }) => message);
}

describe("checkDecisionPaths()", () => {
  it("follows calls from file to file", () => {
    expect(messagesOf(...path)).toEqual([]);
    expect(messagesOf("`src/b.ts` calls `take`", "`src/a.ts` decides")).toEqual([
      "src/a.ts has no take",
    ]);
    expect(messagesOf("`src/a.ts` calls `take`", "`src/c.ts` decides")).toEqual([
      "src/a.ts calls no take",
    ]);
    expect(messagesOf("`src/a.ts`", "`src/c.ts` decides")).toHaveLength(1);
    expect(messagesOf("`src/gone.ts` decides")).toEqual(["there is no src/gone.ts"]);
  });

  it("refuses the seventh file, and a page that lists less than both", () => {
    const long = Array.from({ length: 6 }, () => "`src/b.ts` calls `take`");
    expect(messagesOf(...long, "`src/c.ts` decides")).toContain("is more than 6 files");
    expect(checkDecisionPaths(sources, "")).toHaveLength(1);
  });
});
