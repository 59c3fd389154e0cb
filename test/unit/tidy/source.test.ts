import { describe, expect, it } from "vitest";
import { matches } from "../../tidy/paths.js";
import { lineAt, parseSource } from "../../tidy/source.js";

describe("parseSource()", () => {
  it("lists imports with the names as the other file exports them", () => {
    const text = [
      'import { a as b, type C } from "./a.js";',
      'import * as d from "./d.js";',
      'import e from "./e.js";',
      'export { f as g } from "./f.js";',
    ].join("\n");
    const { imports } = parseSource("src/core/x.ts", text);
    expect(imports).toEqual([
      { specifier: "./a.js", line: 1, names: ["a", "C"] },
      { specifier: "./d.js", line: 2, names: ["*"] },
      { specifier: "./e.js", line: 3, names: ["default"] },
      { specifier: "./f.js", line: 4, names: ["f"] },
    ]);
  });

  it("lists exports of every form", () => {
    const text =
      "export const { a, b: [c] } = d; export type E = 1; const f = 1; export { f as g };";
    const { exports } = parseSource("src/core/x.ts", text);
    expect(exports.map(({ name, kind }) => `${kind} ${name}`)).toEqual([
      "value a",
      "value c",
      "type E",
      "value g",
    ]);
  });

  it("reads plain JavaScript and declarations", () => {
    expect(parseSource("a.mjs", "/** @type {A} */\nconst a = 1;").comments).toHaveLength(1);
    expect(parseSource("a.d.mts", "export declare function a(): void;").exports).toHaveLength(1);
  });

  it("throws for text that is no program", () => {
    expect(() => parseSource("src/core/x.ts", "const = ;")).toThrow("src/core/x.ts");
  });
});

describe("lineAt()", () => {
  it("counts from 1, also for the characters around a line's end", () => {
    const source = parseSource("a.ts", "ab\ncd\n\ne");
    expect([0, 2, 3, 6, 7].map((offset) => lineAt(source, offset))).toEqual([1, 1, 2, 3, 4]);
  });
});

describe("matches()", () => {
  it.each([
    ["src/*.ts", "src/a.ts", true],
    ["src/*.ts", "src/a/b.ts", false],
    ["src/**", "src/a/b.ts", true],
    ["src/{a,b}/**", "src/b/c.ts", true],
    ["src/{a,b}/**", "src/c/b.ts", false],
    ["npm:@grpc/*", "npm:@grpc/grpc-js", true],
    ["a.ts", "abts", false],
  ])("%s and %s: %s", (pattern, path, expected) => {
    expect(matches(pattern, path)).toBe(expected);
  });
});
