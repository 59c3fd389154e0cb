import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type PolicyFileStyle,
  policyDirectoriesMax,
  policyFileBytesMax,
  policyFilesMax,
  readErrorWords,
  readPolicyFiles,
} from "../../../../src/app/config/policy-files.js";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-files-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function write(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

async function versionOf(path: string): Promise<string> {
  const read = await readPolicyFiles(path);
  if (read.kind !== "sources") throw new Error(read.message);
  return read.version;
}

describe("readPolicyFiles()", () => {
  it("reads one file under any name", async () => {
    const path = await write("policy.txt", "domain: a");
    expect(await readPolicyFiles(path)).toMatchObject({
      kind: "sources",
      sources: [{ file: path, text: "domain: a" }],
    });
  });

  it("reads pages beside policies, and none without a policy", async () => {
    await write("lobby.html", "<p>1");
    expect(await readPolicyFiles(folder)).toMatchObject({ kind: "unreadable" });
    expect(await readPolicyFiles(folder, "allFiles")).toMatchObject({ kind: "unreadable" });
    await write("policy.yaml", "domain: a");
    const before = await versionOf(folder);
    const read = await readPolicyFiles(folder);
    expect(read.kind === "sources" && read.sources.map(({ text }) => text)).toEqual([
      "<p>1",
      "domain: a",
    ]);
    await write("lobby.html", "<p>2");
    expect(await versionOf(folder)).not.toBe(before);
  });

  it("reads a directory's YAML files in name order, and no dot file or directory", async () => {
    await write("b.yml", "b");
    await write("a.yaml", "a");
    await write("notes.txt", "x");
    await write(".hidden.yaml", "x");
    await mkdir(join(folder, "nested.yaml"));
    await mkdir(join(folder, "..data"));
    await writeFile(join(folder, "..data", "c.yaml"), "c");
    await symlink(join("..data", "c.yaml"), join(folder, "c.yaml"));
    const read = await readPolicyFiles(folder);
    expect(read.kind === "sources" && read.sources.map(({ text }) => text)).toEqual([
      "a",
      "b",
      "c",
    ]);
  });

  describe.each<{ style: PolicyFileStyle; texts: readonly string[] }>([
    { style: "yamlFiles", texts: ["a"] },
    { style: "allButDotFiles", texts: ["a", "json", "below", "no ending"] },
    { style: "allFiles", texts: ["dot directory", "dot file", "a", "json", "below", "no ending"] },
  ])("as $style", ({ style, texts }) => {
    it("reads the files that count, by their paths, and never those of two dots", async () => {
      await write("a.yaml", "a");
      await write("b.json", "json");
      await write("z", "no ending");
      await write(".hidden.yaml", "dot file");
      for (const directory of ["nested/deep", ".git", "..2026_11_21"]) {
        await mkdir(join(folder, directory), { recursive: true });
      }
      await write("nested/deep/c.yaml", "below");
      await write(".git/d.yaml", "dot directory");
      await write("..2026_11_21/a.yaml", "bookkeeping");
      await write("..twodots.yaml", "bookkeeping");
      await symlink("..2026_11_21", join(folder, "..data"));
      await symlink("nowhere", join(folder, "dangling.yaml"));
      const read = await readPolicyFiles(folder, style);
      expect(read.kind === "sources" && read.sources.map(({ text }) => text)).toEqual(texts);
    });
  });

  it("follows links to files, and none to directories", async () => {
    await mkdir(join(folder, "config"));
    await mkdir(join(folder, "elsewhere"));
    await write("elsewhere/a.yaml", "a");
    await symlink("../elsewhere/a.yaml", join(folder, "config", "link.yaml"));
    await symlink("../elsewhere", join(folder, "config", "directory"));
    const read = await readPolicyFiles(join(folder, "config"), "allFiles");
    expect(read.kind === "sources" && read.sources.map(({ text }) => text)).toEqual(["a"]);
  });

  it(`looks into ${policyDirectoriesMax} directories inside each other, no deeper`, async () => {
    let name = "";
    for (let depth = 1; depth <= policyDirectoriesMax + 1; depth += 1) {
      await write(`${name}${depth}.yaml`, String(depth));
      await mkdir(join(folder, `${name}d`));
      name += "d/";
    }
    const read = await readPolicyFiles(folder, "allFiles");
    expect(read.kind === "sources" && read.sources).toHaveLength(policyDirectoriesMax);
  });

  it("gives equal texts one version wherever they lie, and other texts another", async () => {
    const first = await versionOf(await write("a.yaml", "domain: a"));
    expect(await versionOf(await write("b.yaml", "domain: a"))).toBe(first);
    expect(await versionOf(await write("c.yaml", "domain: b"))).not.toBe(first);
    expect(first).toMatch(/^[0-9a-f]{12}$/);
  });

  it("tells apart where one file ends and the next begins", async () => {
    await write("a.yaml", "xy");
    await write("b.yaml", "z");
    const before = await versionOf(folder);
    await write("a.yaml", "x");
    await write("b.yaml", "yz");
    expect(await versionOf(folder)).not.toBe(before);
  });

  it.each([
    ["a missing path", "none.yaml", "no such file or directory"],
    ["a directory without YAML", ".", "there is no *.yaml or *.yml file"],
  ])("says what is wrong with %s", async (_, name, words) => {
    const read = await readPolicyFiles(join(folder, name));
    expect(read).toMatchObject({ kind: "unreadable", message: expect.stringContaining(words) });
  });

  it("refuses a pipe that nobody writes to, at once, and a device", async () => {
    const path = join(folder, "pipe.yaml");
    execFileSync("mkfifo", [path]);
    for (const one of [path, "/dev/zero"]) {
      expect(await readPolicyFiles(one)).toEqual({
        kind: "unreadable",
        message: `${one} is not a regular file, but a pipe, a socket or a device`,
      });
    }
  });

  it(`reads files of at most ${policyFileBytesMax} bytes`, async () => {
    const path = await write("large.yaml", "");
    await truncate(path, policyFileBytesMax + 1);
    expect(await readPolicyFiles(path)).toMatchObject({
      kind: "unreadable",
      message: expect.stringContaining("is larger than"),
    });
    await truncate(path, policyFileBytesMax);
    expect((await readPolicyFiles(path)).kind).toBe("sources");
  });

  it(`reads at most ${policyFilesMax} files`, async () => {
    for (let i = 0; i < policyFilesMax; i += 1) await write(`${i}.yaml`, "");
    expect((await readPolicyFiles(folder)).kind).toBe("sources");
    await write("one-more.yaml", "");
    expect(await readPolicyFiles(folder)).toMatchObject({
      kind: "unreadable",
      message: expect.stringContaining(`more than ${policyFilesMax}`),
    });
  });
});

describe("readErrorWords()", () => {
  const failed = (code: unknown): unknown => Object.assign(new Error("no words"), { code });

  it.each([
    ["ENOENT", "no such file or directory"],
    ["EACCES", "permission denied"],
    ["EPERM", "permission denied"],
    ["EISDIR", "it is a directory"],
    ["ENOTDIR", "a part of the path is not a directory"],
    ["EROFS", "the file system is read-only"],
    ["ENOSPC", "no space is left"],
    ["EMFILE", "too many files and connections are open: raise the limit of file descriptors"],
    ["ENFILE", "too many files and connections are open: raise the limit of file descriptors"],
    ["ENXIO", "it is a pipe, or a socket without a listener"],
    ["EIO", "EIO"],
  ])("says what %s means", (code, words) => {
    expect(readErrorWords(failed(code))).toBe(words);
  });

  it("has words for what is no error of a file", () => {
    for (const thrown of [failed(5), new Error("x"), "text", undefined]) {
      expect(readErrorWords(thrown)).toBe("unknown reason");
    }
  });

  it("is what a file that is not there is refused with", async () => {
    expect(await readPolicyFiles(join(folder, "none.yaml"))).toEqual({
      kind: "unreadable",
      message: expect.stringContaining("cannot be read: no such file or directory"),
    });
  });
});
