import { describe, expect, it } from "vitest";
import { changedPaths, testsReaching } from "../../run-changed.js";
import { parseSource } from "../../tidy/source.js";

const files: Readonly<Record<string, string>> = {
  "src/core/a.ts": "",
  "src/core/b.ts": 'import "./a.js";',
  "src/cli/main.ts": 'import "../core/b.js";',
  "test/support/program.ts": 'spawn("dist/cli/main.js");',
  "test/support/rows.ts": "",
  "test/unit/core/a.test.ts": 'import "../../../src/core/a.js";',
  "test/unit/core/b.test.ts": 'import "../../../src/core/b.js";',
  "test/unit/core/c.test.ts": 'import "../../support/rows.js";',
  "test/e2e/run.test.ts": 'import "../support/program.js"; read("envoy/demo");',
  "test/golden/generate.test.ts": 'new URL("generate/", import.meta.url);',
  "test/tidy.test.ts": "",
};
const sources = Object.entries(files).map(([path, text]) => parseSource(path, text));

describe("testsReaching()", () => {
  const tidy = "test/tidy.test.ts";

  it.each([
    { changed: ["test/support/rows.ts"], reached: ["test/unit/core/c.test.ts", tidy] },
    {
      changed: ["src/core/b.ts"],
      reached: ["test/unit/core/b.test.ts", "test/e2e/run.test.ts", tidy],
    },
    {
      changed: ["src/core/a.ts"],
      reached: [
        "test/unit/core/a.test.ts",
        "test/unit/core/b.test.ts",
        "test/e2e/run.test.ts",
        tidy,
      ],
    },
    { changed: ["test/unit/core/c.test.ts"], reached: ["test/unit/core/c.test.ts", tidy] },
    { changed: ["envoy/demo/envoy.yaml"], reached: ["test/e2e/run.test.ts", tidy] },
    {
      changed: ["test/golden/generate/case/policy.yaml"],
      reached: ["test/golden/generate.test.ts", tidy],
    },
    { changed: ["LICENSE"], reached: [tidy] },
    { changed: [], reached: [tidy] },
  ])("finds $reached for $changed", ({ changed, reached }) => {
    expect(testsReaching(changed, { sources })).toEqual(reached);
  });

  it.each([["package-lock.json"], ["vitest.config.ts"], ["proto/buf.gen.yaml"]])(
    "finds all tests for %s",
    (path) => {
      const tests = Object.keys(files).filter((one) => one.endsWith(".test.ts"));
      expect(testsReaching([path], { sources })).toEqual(tests);
    },
  );
});

describe("changedPaths()", () => {
  it.each([["no-such-revision"], ["--output=x"]])("says that %s is no revision", (revision) => {
    expect(changedPaths(process.cwd(), revision)).toContain("does not know the revision");
  });
});
