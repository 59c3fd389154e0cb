import { describe, expect, it } from "vitest";
import {
  checkFolderIndex,
  checkFolderSizes,
  checkMirrors,
  checkPasswords,
  checkPlaces,
  checkTopLevel,
  checkTracked,
} from "../../tidy/tree.js";

describe("checkTopLevel()", () => {
  it("refuses what the layout does not name", () => {
    const tracked = ["src/a.ts", "tsconfig.build.json", "notes.md", "notes/a.md", "notes/b.md"];
    expect(checkTopLevel(tracked).map(({ path }) => path)).toEqual(["notes.md", "notes"]);
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

describe("checkPasswords()", () => {
  it.each([
    "GF_SECURITY_ADMIN_PASSWORD: admin",
    'adminPassword: "admin"',
    "command: [redis-server, --requirepass, redis]",
    "REDIS_URL: redis://:redis@redis:6379",
    "REDIS_URL: redis://me:redis@redis:6379",
    "ACL SETUSER headgate on >PASSWORD ~headgate:*",
    "  --from-literal=auth=headgate:PASSWORD",
  ])("refuses %s in what is shipped", (text) => {
    expect(checkPasswords("k8s/a.yaml", `a: b\n${text}`)).toMatchObject([{ line: 2 }]);
    expect(checkPasswords("docker-compose.yml", text)).toHaveLength(1);
    expect(checkPasswords("test/unit/a.test.ts", text)).toEqual([]);
  });

  it.each([
    `GF_SECURITY_ADMIN_PASSWORD: ${"$"}{GRAFANA_PASSWORD:?choose one}`,
    `command: [redis-server, --requirepass, '${"$"}{REDIS_PASSWORD:?choose one}']`,
    `  --from-literal=auth="headgate:${"$"}{REDIS_PASSWORD:?choose one}"`,
    "ACL SETUSER headgate on #SHA256_OF_ITS_PASSWORD ~headgate:*",
    "Wrong passwords, rights and certificates have errors of their own.",
    'passwordSecret: {name: headgate, key: "password"}',
    "redis://redis.redis.svc.cluster.local:6379 and user@example.com",
  ])("lets %s pass", (text) => {
    expect(checkPasswords("k8s/a.yaml", text)).toEqual([]);
  });
});

describe("checkFolderSizes()", () => {
  it("refuses a folder of more files than a reader takes in", () => {
    const files = (folder: string, count: number): string[] =>
      Array.from({ length: count }, (_, i) => `${folder}/a${i}.ts`);
    const paths = [...files("src/core/limits", 25), ...files("src/core/base", 26)];
    expect(checkFolderSizes(paths)).toMatchObject([{ path: "src/core/base" }]);
  });
});

describe("checkFolderIndex()", () => {
  const map = "| `src/core/limits/` | GCRA. |\n| `src/gen/` | Generated. |\n";

  it("refuses a folder without a line, and a line without a folder", () => {
    expect(checkFolderIndex(["src/core/base/a.ts"], map)).toMatchObject([
      { path: "src/core/base", message: "has no line in ARCHITECTURE.md" },
      { path: "src/core/limits", message: "is in ARCHITECTURE.md and holds no file" },
    ]);
  });

  it("takes a row of two folders as both", () => {
    expect(checkFolderIndex(["src/a/b/c.ts"], "| `src/a/{b,d}/` | Both. |\n")).toMatchObject([
      { path: "src/a/d", message: "is in ARCHITECTURE.md and holds no file" },
    ]);
  });

  it("passes a map of what is there", () => {
    expect(checkFolderIndex(["src/core/limits/a.ts", "test/a.ts"], map)).toEqual([]);
  });
});
