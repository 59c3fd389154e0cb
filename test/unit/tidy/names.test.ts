import { describe, expect, it } from "vitest";
import {
  checkDocstrings,
  checkNames,
  checkOneMeaning,
  checkRetiredWords,
  checkStoreNames,
} from "../../tidy/names.js";
import { parseSource } from "../../tidy/source.js";

describe("checkDocstrings()", () => {
  it.each([
    "export const a = 1;",
    "export type A = string;",
    "export interface A {}",
    "export class A {}",
    "// A line.\nexport function a() {}",
    "/* No docstring. */\nexport function a() {}",
    "/** */\nexport function a() {}",
    "/** Of something else. */\nconst b = 1;\nexport const a = 1;",
  ])("refuses %s", (text) => {
    const lineCount = text.split("\n").length;
    expect(checkDocstrings(parseSource("src/core/a.ts", text))).toMatchObject([
      { line: lineCount },
    ]);
  });

  it.each([
    "/** Says it. */\nexport const a = 1;",
    "/** `a` of b. */\nexport const a = 1;",
    "/**\n * Says it\n * in lines.\n */\nexport async function a() {}",
    "/** Says it. */\nexport function a(b: A): void;\nexport function a(b: B): void;",
    "const a = 1;",
    'export { a } from "./a.js";',
  ])("lets %s pass", (text) => {
    expect(checkDocstrings(parseSource("src/core/a.ts", text))).toEqual([]);
  });

  it("asks nothing of tests", () => {
    expect(checkDocstrings(parseSource("test/support/a.ts", "export const a = 1;"))).toEqual([]);
  });
});

describe("checkOneMeaning()", () => {
  const found = (texts: Readonly<Record<string, string>>) =>
    checkOneMeaning(Object.entries(texts).map(([path, text]) => parseSource(path, text)));

  it("refuses a name that two files of src export", () => {
    const texts = { "src/core/a.ts": "export const a = 1;", "src/cli/b.ts": "export type a = 1;" };
    expect(found(texts)).toEqual([
      expect.objectContaining({
        path: "src/cli/b.ts",
        message: expect.stringContaining("core/a.ts"),
      }),
    ]);
  });

  it("lets library and service have no name together but the library's own", () => {
    const library = { "src/client/b.ts": "export type a = 1;" };
    expect(found({ "src/core/a.ts": "export const a = 1;", ...library })).toHaveLength(1);
    expect(found({ "src/client/a.ts": "export const a = 1;", ...library })).toHaveLength(1);
    const admission = "export class Admission {}";
    const both = { "src/decide/a.ts": admission, "src/client/a.ts": admission };
    expect(found(both)).toEqual([]);
    const entries = ["undici", "connect"].map((name) => `src/client/adapters/${name}.ts`);
    const text = "export const a = 1;";
    expect(found(Object.fromEntries(entries.map((path) => [path, text])))).toEqual([]);
  });

  it("lets overloads and names of tests pass", () => {
    const overloads = "export function a(b: A): void;\nexport function a(b: B): void;";
    expect(found({ "src/core/a.ts": overloads, "test/a.ts": "export const a = 1;" })).toEqual([]);
  });
});

describe("checkNames()", () => {
  it.each([
    "src/core/limitStore.ts",
    "src/core/Limit.ts",
    "src/core/limit_store.ts",
    "src/core/store-manager.ts",
    "src/core/utils.ts",
    "src/helpers/a.ts",
  ])("refuses the file %s", (path) => {
    expect(checkNames(parseSource(path, ""))).toHaveLength(1);
  });

  it.each([
    "src/core/limit-store.ts",
    "test/unit/core/gcra.property.test.ts",
    "src/programs/lock.d.mts",
    "src/rpc/grpc-js.ts",
  ])("lets the file %s pass", (path) => {
    expect(checkNames(parseSource(path, ""))).toEqual([]);
  });

  it.each(["StoreManager", "KeyHelpers", "StringUtil", "StoreImpl", "ILimit", "MyStore"])(
    "refuses the name %s",
    (name) => {
      expect(checkNames(parseSource("src/core/a.ts", `export class ${name} {}`))).toHaveLength(1);
    },
  );

  it.each(["IPv4Address", "Identity", "Implementation", "Utilization", "isIo", "Mystery"])(
    "lets the name %s pass",
    (name) => {
      expect(checkNames(parseSource("src/core/a.ts", `export class ${name} {}`))).toEqual([]);
    },
  );
});

describe("checkRetiredWords()", () => {
  it.each([
    "class SheetBoard {}",
    "const reign = 1;",
    "const isNewReign = true;",
    "class GateBook {}",
    "new LoneRecords();",
    "const usualTimeouts = {};",
    "const usual = 1;",
    "const isUsual = true;",
    "// usually alone",
    "const lonePolicy = 1;",
    "// The road of a request.",
    "const checkRoad = 1;",
    "const told = 1;",
    "const toldPartsMax = 8;",
    "const isTold = true;",
    "interface ToldKind {}",
    "// The policy in force.",
  ])("refuses %s in src", (text) => {
    const [found, ...more] = checkRetiredWords(parseSource("src/core/a.ts", `\n${text}`));
    expect(found).toMatchObject({ path: "src/core/a.ts", line: 2 });
    expect(more).toEqual([]);
  });

  it.each([
    "const isForeign = true;",
    "const runbook = 1;",
    "const presets = {\n  usual: defaultPreset,\n};",
    'words("usual", "eager")',
    "// A lone surrogate.",
    "// What a caller is told.",
  ])("takes %s", (text) => {
    expect(checkRetiredWords(parseSource("src/core/a.ts", text))).toEqual([]);
  });

  it("leaves tests alone", () => {
    expect(checkRetiredWords(parseSource("test/unit/a.ts", "const reign = 1;"))).toEqual([]);
  });
});

describe("checkStoreNames()", () => {
  it.each(["// As Redis has it.", "const redisPools = 1;", 'const kind = "redis";'])(
    "refuses %s where any store may stand",
    (text) => {
      expect(checkStoreNames(parseSource("src/fleet/a.ts", text))).toMatchObject([{ line: 1 }]);
    },
  );

  it("lets those say it who speak with it or choose it", () => {
    for (const path of ["src/store/redis/a.ts", "src/app/config/a.ts", "test/contract/a.ts"]) {
      expect(checkStoreNames(parseSource(path, "const redisPools = 1;"))).toEqual([]);
    }
  });
});
