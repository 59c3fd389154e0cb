import { describe, expect, it } from "vitest";
import {
  checkCycles,
  checkDirections,
  checkExportForms,
  checkFolderCycles,
  checkTargetsExist,
} from "../../tidy/imports.js";
import { parseSource, type Source } from "../../tidy/source.js";

const directions: ReadonlyArray<readonly [from: string, specifier: string, isAllowed: boolean]> = [
  ["src/core/gcra.ts", "./exact.js", true],
  ["src/core/gcra.ts", "../policy/policy.js", false],
  ["src/core/gcra.ts", "node:crypto", false],
  ["src/core/gcra.ts", "zod", false],
  ["src/policy/parse.ts", "yaml", true],
  ["src/policy/parse.ts", "node:fs", false],
  ["src/policy/parse.ts", "fs", false],
  ["src/store/memory.ts", "ioredis", false],
  ["src/store/redis/take.ts", "ioredis", true],
  ["src/store/redis/take.ts", "../../policy/policy.js", false],
  ["src/decide/decider.ts", "../store/limit-store.js", true],
  ["src/decide/decider.ts", "../store/memory.js", false],
  ["src/wire/frame.ts", "node:net", true],
  ["src/wire/frame.ts", "node:http2", false],
  ["src/rpc/rls/rls.ts", "../../wire/grpc/service.js", true],
  ["src/rpc/rls.ts", "../wire/frame.js", false],
  ["src/rpc/rls.ts", "../gen/envoy/service/ratelimit/v3/rls_pb.js", true],
  ["src/rpc/rls.ts", "@bufbuild/protobuf/wkt", true],
  ["src/rpc/rls.ts", "@grpc/grpc-js", false],
  ["src/rpc/policy-xds/grpc-js-ads-stream.ts", "@grpc/grpc-js", true],
  ["src/generate/istio.ts", "../rpc/rls.js", false],
  ["src/app/serve.ts", "../cli/main.js", false],
  ["src/app/serve.ts", "../gen/envoy/service/ratelimit/v3/rls_pb.js", false],
  ["src/app/serve.ts", "../rpc/rls.js", true],
  ["src/app/serve.ts", "pino", false],
  ["src/app/base/logger.ts", "pino", true],
  ["src/app/serve.ts", "prom-client", false],
  ["src/cli/main.ts", "commander", true],
  ["src/cli/main.ts", "../store/memory.js", false],
  ["tools/bootstrap.mjs", "./prepare.mjs", true],
  ["tools/bootstrap.mjs", "../src/demo/demo.js", false],
  ["tools/bootstrap.mjs", "yaml", false],
  ["src/demo/demo.ts", "../app/base/clock.js", true],
  ["src/cli/main.ts", "../../tools/prepare.mjs", false],
  ["test/unit/core/gcra.test.ts", "ioredis", true],
  ["test/unit/core/gcra.test.ts", "./match.test.js", false],
  ["src/core/gcra.ts", "../../test/support/fake-clock.js", false],
];

describe("checkDirections()", () => {
  it.each(directions)("%s may import %s: %s", (from, specifier, isAllowed) => {
    const found = checkDirections(parseSource(from, `import { a } from "${specifier}";`));
    expect(found).toHaveLength(isAllowed ? 0 : 1);
  });

  it.each([
    'import type { A } from "zod";',
    'export { a } from "zod";',
    'export * from "zod";',
    'import "zod";',
    'const a = await import("zod");',
    'type A = import("zod").A;',
  ])("counts %s", (text) => {
    const [first] = checkDirections(parseSource("src/core/a.ts", `\n${text}`));
    expect(first).toMatchObject({ path: "src/core/a.ts", line: 2 });
    expect(first?.message).toContain("must not import npm:zod");
  });

  it("names the home of a package", () => {
    const [first] = checkDirections(
      parseSource("src/app/a.ts", 'import { Redis } from "ioredis";'),
    );
    expect(first?.message).toContain("only src/store/redis/** may");
  });

  it("refuses a folder that is not in the table", () => {
    expect(checkDirections(parseSource("src/utils/a.ts", ""))).toHaveLength(1);
  });
});

describe("checkExportForms()", () => {
  it.each([
    ["a default export", "export default 4;"],
    ["a renamed default export", "const a = 1; export { a as default };"],
    ["export *", 'export * from "./a.js"; export const a = 1;'],
    ["a file that only re-exports", 'export { a } from "./a.js";'],
    ["a file that imports and re-exports", 'import { a } from "./a.js"; export { a };'],
  ])("refuses %s", (_, text) => {
    expect(checkExportForms(parseSource("src/core/b.ts", text))).toHaveLength(1);
  });

  it("lets an entry of the library pass names on", () => {
    const text = 'export { a } from "./a.js";';
    expect(checkExportForms(parseSource("src/client/index.ts", text))).toEqual([]);
  });

  it("lets a file pass that defines something, and one without exports", () => {
    const text = 'export { a } from "./a.js"; export const b = 1;';
    expect(checkExportForms(parseSource("src/core/b.ts", text))).toEqual([]);
    expect(checkExportForms(parseSource("src/core/b.ts", 'import "./a.js";'))).toEqual([]);
  });
});

describe("checkTargetsExist()", () => {
  it("refuses an import of a file that is not there", () => {
    const found = checkTargetsExist([parseSource("src/core/a.ts", 'import "./gone.js";')]);
    expect(found).toMatchObject([{ message: "imports src/core/gone.ts, which is not there" }]);
  });

  it("leaves generated files and packages to others", () => {
    const text = 'import "../gen/a_pb.js"; import "zod"; import "./b.js";';
    const sources = [parseSource("src/core/a.ts", text), parseSource("src/core/b.ts", "")];
    expect(checkTargetsExist(sources)).toEqual([]);
  });
});

describe("checkCycles()", () => {
  const file = (name: string, ...imports: readonly string[]): Source =>
    parseSource(
      `src/core/${name}.ts`,
      imports.map((one) => `import type { A } from "./${one}.js";`).join("\n"),
    );

  it("reports a circle once, with its way round", () => {
    const found = checkCycles([file("a", "b"), file("b", "d", "c"), file("c", "a"), file("d")]);
    expect(found).toHaveLength(1);
    expect(found[0]?.message).toContain(
      "src/core/a.ts -> src/core/b.ts -> src/core/c.ts -> src/core/a.ts",
    );
  });

  it("reports a file that imports itself", () => {
    expect(checkCycles([file("a", "a")])).toHaveLength(1);
  });

  it("lets two ways to one file pass", () => {
    expect(checkCycles([file("a", "b", "c"), file("b", "d"), file("c", "d"), file("d")])).toEqual(
      [],
    );
  });
});

describe("checkFolderCycles()", () => {
  const file = (path: string, ...imports: readonly string[]): Source =>
    parseSource(path, imports.map((one) => `import type { A } from "${one}";`).join("\n"));

  it("reports a circle of folders that is none of files", () => {
    const found = checkFolderCycles([
      file("src/core/limits/a.ts", "../base/b.js"),
      file("src/core/base/b.ts"),
      file("src/core/base/c.ts", "../limits/d.js"),
      file("src/core/limits/d.ts"),
    ]);
    expect(found).toMatchObject([
      { message: expect.stringContaining("src/core/limits -> src/core/base -> src/core/limits") },
    ]);
  });

  it("lets folders import in one direction, and from within", () => {
    const sources = [
      file("src/core/limits/a.ts", "./d.js", "../base/b.js"),
      file("src/core/base/b.ts", "./c.js"),
      file("src/core/base/c.ts"),
      file("src/core/limits/d.ts", "../base/c.js"),
    ];
    expect(checkFolderCycles(sources)).toEqual([]);
  });
});
