import { describe, expect, it } from "vitest";
import { checkMirrors, checkPlaces, checkTopLevel, checkTracked } from "../../tidy/tree.js";

describe("checkTopLevel()", () => {
  it("refuses what the layout does not name", () => {
    const tracked = ["src/a.ts", "tsconfig.build.json", "notes.md", "docs/a.md", "docs/b.md"];
    expect(checkTopLevel(tracked).map(({ path }) => path)).toEqual(["notes.md", "docs"]);
  });
});

describe("checkTracked()", () => {
  it("refuses what the build makes", () => {
    const tracked = ["dist/a.js", "src/gen/a_pb.js", "src/core/a.ts"];
    expect(checkTracked(tracked).map(({ path }) => path)).toEqual(["dist/a.js", "src/gen/a_pb.js"]);
  });
});

describe("checkMirrors()", () => {
  it("refuses a unit test without the file it is named after", () => {
    const found = checkMirrors(["src/core/gcra.ts", "test/unit/core/gcar.test.ts"]);
    expect(found).toMatchObject([{ message: "tests no file: there is no src/core/gcar.ts" }]);
  });

  it.each([
    "test/unit/core/gcra.test.ts",
    "test/unit/core/gcra.property.test.ts",
    "test/unit/tidy/paths.test.ts",
    "test/contract/store.test.ts",
    "test/support/fake-clock.ts",
  ])("lets %s pass", (path) => {
    expect(checkMirrors(["src/core/gcra.ts", path])).toEqual([]);
  });
});

describe("checkPlaces()", () => {
  it.each(["home", "root", "work"])("refuses a path below /%s", (folder) => {
    const text = `first\ncp ${["", folder, "me"].join("/")} .`;
    expect(checkPlaces("README.md", text)).toMatchObject([{ path: "README.md", line: 2 }]);
  });

  it.each([
    ["registry", "npmjs", "org"],
    ["pypi", "org"],
    ["proxy", "golang", "org"],
  ])("refuses a registry's host: %s", (...parts) => {
    expect(checkPlaces("a.yaml", `https://${parts.join(".")}/`)).toHaveLength(1);
  });

  it.each(["./work/a", "src/home/a", "the home of", "registry.k8s.io/a"])(
    "lets %s pass",
    (text) => {
      expect(checkPlaces("a.yaml", text)).toEqual([]);
    },
  );
});
