import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../../../../src/cli/program.js";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-fmt-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function fmt(...args: readonly string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const output = { out: (text: string) => out.push(text), err: (text: string) => err.push(text) };
  const code = await runCli(["fmt", ...args], output);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

async function write(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

const wild = "descriptors: [ {value: b,   key: a} ]   # all\ndomain: x\n";
const tidy = "domain: x\ndescriptors: [{key: a, value: b}] # all\n";

describe("headgate fmt", () => {
  it("prints one file in its one form, and leaves the file alone", async () => {
    const path = await write("a.yaml", wild);
    expect(await fmt(path)).toEqual({ code: 0, out: tidy.trimEnd(), err: "" });
    expect(await readFile(path, "utf8")).toBe(wild);
  });

  it("leaves pages of waiting rooms beside policies alone", async () => {
    await write("a.yaml", wild);
    await write("lobby.html", "<p>  {{position}}");
    expect(await fmt(folder)).toEqual({ code: 0, out: tidy.trimEnd(), err: "" });
  });

  it("writes what changes and names it, keeping rights and links", async () => {
    await mkdir(join(folder, "policies"));
    const path = await write("policies/a.yaml", wild);
    await chmod(path, 0o640);
    const right = await write("policies/b.yaml", tidy);
    const before = await stat(right);
    const link = join(folder, "link.yaml");
    await symlink(path, link);
    expect(await fmt("--write", link, join(folder, "policies"))).toMatchObject({ code: 0 });
    expect(await readFile(path, "utf8")).toBe(tidy);
    expect((await stat(path)).mode & 0o777).toBe(0o640);
    expect((await stat(right)).mtimeMs).toBe(before.mtimeMs);
    expect((await readdir(join(folder, "policies"))).sort()).toEqual(["a.yaml", "b.yaml"]);
    expect(await readFile(link, "utf8")).toBe(tidy);
    expect(await fmt("--write", path)).toEqual({ code: 0, out: "", err: "" });
  });

  it("answers 4 with --check while a file would change, and names it", async () => {
    const wrong = await write("a.yaml", wild);
    const right = await write("b.yaml", tidy);
    expect(await fmt("--check", wrong, right)).toEqual({ code: 4, out: wrong, err: "" });
    expect(await fmt("--check", right)).toEqual({ code: 0, out: "", err: "" });
    expect(await readFile(wrong, "utf8")).toBe(wild);
  });

  it("writes nothing where one of the files is not YAML", async () => {
    const path = await write("a.yaml", wild);
    const broken = await write("b.yaml", "domain: [");
    const { code, err } = await fmt("--write", path, broken);
    expect(code).toBe(3);
    expect(err).toContain(`${broken}:1:`);
    expect(err).toContain("HG101");
    expect(await readFile(path, "utf8")).toBe(wild);
  });

  it("says what it cannot do", async () => {
    const path = await write("a.yaml", wild);
    expect(await fmt(join(folder, "none.yaml"))).toMatchObject({ code: 1 });
    expect(await fmt(path, await write("b.yaml", tidy))).toMatchObject({ code: 2 });
    expect(await fmt("--write", "--check", path)).toMatchObject({ code: 2 });
    expect(await fmt("--write", "-")).toMatchObject({ code: 2 });
  });
});
