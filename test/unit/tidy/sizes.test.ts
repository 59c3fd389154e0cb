import { describe, expect, it } from "vitest";
import { checkSizes } from "../../tidy/sizes.js";
import { parseSource } from "../../tidy/source.js";

const messages = (path: string, text: string): readonly string[] =>
  checkSizes(parseSource(path, text)).map(({ message }) => message);

describe("checkSizes()", () => {
  it.each([
    ["src/core/a.ts", 500],
    ["test/unit/core/a.test.ts", 800],
  ])("lets %s have %d lines, and no more", (path, linesMax) => {
    expect(messages(path, "a;\n".repeat(linesMax))).toEqual([]);
    expect(messages(path, "a;\n".repeat(linesMax + 1))).toHaveLength(1);
  });

  it("lets a line have 100 columns, and no more", () => {
    expect(messages("src/core/a.ts", `// ${"x".repeat(97)}`)).toEqual([]);
    expect(messages("src/core/a.ts", `// ${"x".repeat(98)}`)).toHaveLength(1);
  });

  it("lets a line be as long as the URL in it", () => {
    expect(messages("src/core/a.ts", `// https://example.com/${"x".repeat(98)}`)).toEqual([]);
  });

  it.each([
    ["a function", "function f() {\n", "}"],
    ["an arrow function", "const f = () => {\n", "};"],
    ["a method", "class C {\nm() {\n", "}\n}"],
    ["a test", 'it("x", () => {\n', "});"],
  ])("lets %s have 70 lines, and no more", (_, head, tail) => {
    expect(messages("src/core/a.ts", `${head}${"a;\n".repeat(68)}${tail}`)).toEqual([]);
    expect(messages("src/core/a.ts", `${head}${"a;\n".repeat(69)}${tail}`)).toHaveLength(1);
  });

  it.each(["describe(", "describe.each(rows)("])("lets %s hold many tests", (call) => {
    const text = `${call}"x", () => {\n${"a;\n".repeat(100)}});`;
    expect(messages("test/unit/core/a.test.ts", text)).toEqual([]);
  });

  it.each([
    "function f(a, b, c, d) {}",
    "const f = (a, b, c, d = 1) => a;",
    "class C { constructor(a, b, c, d) {} }",
    "class C { m(a, b, c, ...rest) {} }",
    "interface I { m(a: A, b: B, c: C, d: D): void }",
    "interface I { readonly f: (a: A, b: B, c: C, d: D) => void }",
    "abstract class C { abstract m(a: A, b: B, c: C, d: D): void }",
    "declare function f(a: A, b: B, c: C, d: D): void;",
  ])("refuses four parameters in %s", (text) => {
    expect(messages("src/core/a.ts", text)).toHaveLength(1);
  });

  it.each([
    "function f(a, b, c) {}",
    "function f(this: A, a, b, c) {}",
    "library.on((a, b, c, d) => a);",
  ])("lets the parameters of %s pass", (text) => {
    expect(messages("src/core/a.ts", text)).toEqual([]);
  });
});
