import { describe, expect, it } from "vitest";
import { castRows, nullRows } from "../../tidy/rules.js";
import { parseSource } from "../../tidy/source.js";
import {
  checkCasts,
  checkExceptions,
  checkGlobals,
  checkLeftovers,
  checkStatuses,
  checkTestSwitches,
  checkTypes,
} from "../../tidy/tokens.js";

const source = (text: string, path = "src/core/a.ts") => parseSource(path, text);

describe("checkGlobals()", () => {
  it.each([
    "const a = Date.now();",
    "const a = new Date();",
    "function f(at: Date) {}",
    "const a = performance.now();",
    "setTimeout(f, 1);",
    "const wait = promisify(setTimeout);",
    "globalThis.setTimeout(f, 1);",
    "setImmediate(f);",
    'import { setTimeout } from "node:timers/promises";',
    "const a = AbortSignal.timeout(1);",
    "const a = Math.random();",
    "const a = crypto.randomUUID();",
    "const a = { process };",
    "const a = process.env;",
    "console.log(1);",
  ])("refuses %s in src/core", (text) => {
    expect(checkGlobals(source(`\n${text}`))).toMatchObject([{ line: 2 }]);
  });

  it.each([
    "const a = { Date: 1, process: 2 };",
    "const a = b.process;",
    "interface A { process(): void; readonly Date: string }",
    "function f(process: A) { process.stop(); }",
    "class A { process() {} }",
    "const a = Math.floor(1);",
    '// Date.now()\nconst a = "Date.now()";',
  ])("lets %s pass", (text) => {
    expect(checkGlobals(source(text))).toEqual([]);
  });

  it.each([
    ["src/app/clock.ts", "Date.now(); setTimeout(f, 1); process.exit(); Math.random();", 0],
    ["src/cli/main.ts", "process.exit(); console.log(1); Date.now();", 1],
    ["test/support/wait.ts", "setTimeout(f, 1); Date.now();", 0],
    ["test/e2e/a.test.ts", "setTimeout(f, 1); Date.now();", 1],
    ["test/unit/core/a.test.ts", "setTimeout(f, 1); Date.now();", 2],
    ["test/unit/core/a.test.ts", "setImmediate(f); process.env;", 0],
    ["test/unit/core/a.test.ts", 'import { vi } from "vitest"; vi.mock("./a.js");', 1],
  ])("knows the places of %s: %s", (path, text, count) => {
    expect(checkGlobals(source(text, path))).toHaveLength(count);
  });
});

describe("checkTypes()", () => {
  it.each([
    "let a: any;",
    "const a = b!;",
    "class A { b!: string }",
    "enum A { b }",
    "namespace A { export const b = 1; }",
    "const a = <A>b;",
  ])("refuses %s everywhere", (text) => {
    expect(checkTypes(source(text, "test/unit/core/a.test.ts"))).toHaveLength(1);
  });

  it.each(["const a = null;", "type A = string | null;", "let a = 1;", "export let a = 1;"])(
    "refuses %s in src",
    (text) => {
      expect(checkTypes(source(text))).toHaveLength(1);
      expect(checkTypes(source(text, "test/unit/core/a.test.ts"))).toEqual([]);
    },
  );

  it.each([
    "const a = b === null;",
    "const a = null !== b;",
    "function f() { let a = 1; }",
    'declare module "vitest" {}',
    '// any null\nconst a = "any";',
  ])("lets %s pass", (text) => {
    expect(checkTypes(source(text))).toEqual([]);
  });

  it("knows the files that must write null", () => {
    expect(checkTypes(source("f(null);", "src/app/base/logger.ts"))).toEqual([]);
    expect(checkTypes(source("f();", "src/app/base/logger.ts"))).toHaveLength(1);
  });
});

describe("checkCasts()", () => {
  it("refuses as in src, except const and unknown", () => {
    expect(checkCasts(source("const a = b as A;"))).toHaveLength(1);
    expect(checkCasts(source("const a = b as unknown as A;"))).toHaveLength(1);
    expect(checkCasts(source("const a = [] as const; const b = a as unknown;"))).toEqual([]);
  });

  it("holds a file to its number of casts, up and down", () => {
    const [row] = castRows;
    if (row === undefined) throw new Error("a row of castRows is needed");
    const { path, count } = row;
    const cast = "f(b as A);";
    expect(checkCasts(source(cast.repeat(count), path))).toEqual([]);
    expect(checkCasts(source(cast.repeat(count + 1), path))).toHaveLength(count + 1);
    expect(checkCasts(source(cast.repeat(count - 1), path))).toMatchObject([{ line: 1 }]);
  });

  it("refuses only pairs in tests", () => {
    const path = "test/unit/core/a.test.ts";
    expect(checkCasts(source("f(b as A);", path))).toEqual([]);
    expect(checkCasts(source("f(b as unknown as A);", path))).toHaveLength(1);
  });
});

describe("checkExceptions()", () => {
  it("refuses a row whose file is gone", () => {
    const paths = [...castRows, ...nullRows].map(({ path }) => path);
    expect(checkExceptions(paths)).toEqual([]);
    expect(checkExceptions(paths.slice(1))).toMatchObject([{ path: paths[0] }]);
  });
});

describe("checkStatuses()", () => {
  it.each([
    "const a = { status: 200 };",
    "const a = { gone: 404 };",
    "const a = { grpcStatus: 8 };",
    'send([":status", "500"]);',
    "text(404, b);",
    "if (status === 200) f();",
    "f(a ? 429 : 1);",
    "f(a ?? 503);",
    "const a = new Set([429, 1]);",
  ])("refuses %s", (text) => {
    expect(checkStatuses(source(text))).toHaveLength(1);
  });

  it("lets the table, tests and other numbers pass", () => {
    expect(
      checkStatuses(source("const a = { size: 200, bytes: 500, grpcStatus: 0x22 }; f(400);")),
    ).toEqual([]);
    expect(checkStatuses(source("f(404);", "src/core/base/http-status.ts"))).toEqual([]);
    expect(checkStatuses(source("f(404);", "test/unit/a.test.ts"))).toEqual([]);
  });
});

describe("checkTestSwitches()", () => {
  it.each([
    'it.only("x", f);',
    'it.skip("x", f);',
    'test.todo("x");',
    'describe.skipIf(a)("x", f);',
    'it.only.each([1])("x", f);',
  ])("refuses %s", (text) => {
    expect(checkTestSwitches(source(text, "test/unit/a.test.ts"))).toHaveLength(1);
  });

  it("lets tables, and other things of these names, pass", () => {
    const text = 'it.each([1])("x", f); lexer.skip(1); fc.assert(only);';
    expect(checkTestSwitches(source(text, "test/unit/a.test.ts"))).toEqual([]);
  });
});

describe("checkLeftovers()", () => {
  it.each(["TODO", "FIXME", "XXX", "HACK"])("refuses %s in a comment", (mark) => {
    expect(checkLeftovers(source(`const a = 1;\n/** ${mark}: more */`))).toMatchObject([
      { line: 2 },
    ]);
    expect(checkLeftovers(source(`const a = "${mark}";`))).toEqual([]);
  });
});
