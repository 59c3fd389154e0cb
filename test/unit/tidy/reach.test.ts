import { describe, expect, it } from "vitest";
import {
  checkPackages,
  checkUnreachedFiles,
  checkUnusedExports,
  type Manifest,
} from "../../tidy/reach.js";
import { parseSource, type Source } from "../../tidy/source.js";

const main = "src/cli/main.ts";

const parse = (files: Readonly<Record<string, string>>): readonly Source[] =>
  Object.entries(files).map(([path, text]) => parseSource(path, text));

describe("checkUnreachedFiles()", () => {
  const unreached = (files: Readonly<Record<string, string>>, commands = ""): readonly string[] =>
    checkUnreachedFiles(parse(files), { commands }).map(({ path }) => path);

  it("reports a file that nothing imports, and what only that file imports", () => {
    const files = {
      [main]: 'import "../core/a.js";',
      "src/core/a.ts": "",
      "src/core/b.ts": 'import "./c.js";',
      "src/core/c.ts": "",
    };
    expect(unreached(files)).toEqual(["src/core/b.ts", "src/core/c.ts"]);
  });

  it.each([
    ["an import", 'import "../core/a.js";', ""],
    ["a dynamic import", 'await import("../core/a.js");', ""],
    ["a URL", 'new URL("../core/a.js", import.meta.url);', ""],
    ["a path from the top", 'spawn("src/core/a.ts");', ""],
    ["a script of package.json", "", "node src/core/a.ts"],
    ["a program of package.json", "", "dist/core/a.js"],
  ])("follows %s", (_, text, commands) => {
    expect(unreached({ [main]: text, "src/core/a.ts": "" }, commands)).toEqual([]);
  });

  it("starts from tests", () => {
    const text = 'import "../../../src/core/a.js";';
    expect(unreached({ "test/unit/core/a.test.ts": text, "src/core/a.ts": "" })).toEqual([]);
  });

  it("keeps the types beside plain JavaScript", () => {
    const files = { [main]: 'import "../dev/a.mjs";', "src/dev/a.mjs": "", "src/dev/a.d.mts": "" };
    expect(unreached(files)).toEqual([]);
  });
});

describe("checkUnusedExports()", () => {
  const unused = (files: Readonly<Record<string, string>>): readonly string[] =>
    checkUnusedExports(parse(files)).map(({ message }) => message);

  it("reports what no other file takes", () => {
    const found = unused({
      "src/core/a.ts": "export const a = 1; export const b = a; export type T = string;",
      [main]: 'import { b } from "../core/a.js";',
    });
    expect(found).toEqual([
      "nothing imports a; do not export it, or delete it",
      "nothing imports T; do not export it, or delete it",
    ]);
  });

  it.each([
    ["a test", "test/unit/core/a.test.ts", 'import { a } from "../../../src/core/a.js";'],
    ["a re-export", main, 'export { a as b } from "../core/a.js";'],
    ["a namespace", main, 'import * as b from "../core/a.js";'],
  ])("counts %s", (_, path, text) => {
    expect(unused({ "src/core/a.ts": "export const a = 1;", [path]: text })).toEqual([]);
  });

  it("lets an entry of the library pass", () => {
    expect(unused({ "src/client/index.ts": "export const a = 1;" })).toEqual([]);
  });

  it("lets a type pass that another export needs", () => {
    const text = "export interface A {} export function b(a: A) {}";
    expect(unused({ "src/core/a.ts": text, [main]: 'import { b } from "../core/a.js";' })).toEqual(
      [],
    );
  });
});

describe("checkPackages()", () => {
  const check = (text: string, manifest: Partial<Manifest>, path = main): readonly string[] =>
    checkPackages([parseSource(path, text)], {
      bundled: [],
      peers: [],
      devDependencies: [],
      commands: "",
      configuration: "",
      programsOf: () => [],
      ...manifest,
    }).map(({ message }) => message);

  it("reports an import that package.json does not list", () => {
    expect(check('import "@a/b/c";', {})).toEqual(["@a/b is not in bundled"]);
    const development = { devDependencies: ["a"] };
    expect(check('import "a";', development)).toEqual(["a is not in bundled"]);
    expect(check('import "a";', development, "test/unit/a.test.ts")).toEqual([]);
  });

  it("wants peers of what the library imports", () => {
    const path = "src/client/a.ts";
    const bundled = check('import "a";', { bundled: ["a"] }, path);
    expect(bundled).toContain("a is not in peerDependencies");
    expect(check('import "a";', { peers: ["a"] }, path)).toEqual([]);
  });

  it("reports a bundled package that src does not use, even when a test does", () => {
    const found = check('import "a";', { bundled: ["a"] }, "test/unit/a.test.ts");
    expect(found).toEqual(["nothing in src imports a; take it out of bundled"]);
    expect(check('transport("a");', { bundled: ["a"] })).toEqual([]);
  });

  it.each([
    ["nothing", {}, 1],
    ["a script", { commands: "a --flag" }, 0],
    ["a configuration", { configuration: '"types": ["a"]' }, 0],
    ["its program", { commands: "prog -x", programsOf: () => ["prog"] }, 0],
    ["part of another word", { commands: "b-a a-b" }, 1],
  ] as const)("looks for a development tool in %s", (_, manifest, count) => {
    expect(check("", { devDependencies: ["a"], ...manifest })).toHaveLength(count);
  });

  it("knows a package of types by the name of what it types", () => {
    expect(check("", { devDependencies: ["@types/a"], configuration: '"a"' })).toEqual([]);
  });
});
