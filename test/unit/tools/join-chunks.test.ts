import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build, type Metafile } from "esbuild";
import { afterAll, describe, expect, it } from "vitest";
import { joinChunks } from "../../../tools/join-chunks.mjs";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const options = { format: "esm", platform: "node", logLevel: "warning" } as const;

/** Text of a module that nothing else is large beside. */
const large = `export const large = "${"x".repeat(1_000_000)}";`;

/** Two commands and a service that share modules, each by another set. */
const modules = {
  "both.ts": `
    export const name = "both";
    export let count = 0;
    export const add = () => { count += 1; };`,
  "all.ts": `export const name = "all"; console.log("all");`,
  "service-and-one.ts": `
    import { name as all } from "./all.js";
    export const name = "service and " + all;`,
  "large.ts": large,
  "later.ts": `
    import { count } from "./both.js";
    import { name } from "./all.js";
    export const told = name + count;`,
  "one.ts": `
    import { name, add } from "./both.js";
    import { name as all } from "./all.js";
    import { name as served } from "./service-and-one.js";
    add();
    console.log(name, all, served, (await import("./later.js")).told);`,
  "two.ts": `
    import { name, add, count } from "./both.js";
    import { name as all } from "./all.js";
    import { large } from "./large.js";
    add();
    console.log(name, all, count, large.length);`,
  "service.ts": `
    import { name } from "./service-and-one.js";
    import { name as all } from "./all.js";
    export const told = name + all;
    console.log(told);`,
  "other.ts": `import { large } from "./large.js"; console.log(large.length);`,
};

const starts = ["one", "two", "service", "other"];

/** The outputs of those modules, before they are joined. */
async function buildSplit(): Promise<{ root: string; outputs: Metafile["outputs"] }> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "headgate-join-")));
  folders.push(root);
  mkdirSync(join(root, "src"));
  for (const [name, text] of Object.entries(modules)) writeFileSync(join(root, "src", name), text);
  const { metafile } = await build({
    ...options,
    absWorkingDir: root,
    entryPoints: starts.map((name) => `src/${name}.ts`),
    outdir: "dist",
    chunkNames: "chunks/[name]-[hash]",
    bundle: true,
    splitting: true,
    metafile: true,
  });
  writeFileSync(join(root, "package.json"), `{"type": "module"}`);
  return { root, outputs: metafile.outputs };
}

function joinAll({ root, outputs }: { root: string; outputs: Metafile["outputs"] }): Promise<void> {
  return joinChunks({
    root,
    dist: "dist",
    outputs,
    starts: starts.map((name) => ({ entries: [`dist/${name}.js`], weight: 1 })),
    options,
  });
}

const run = (root: string, name: string): string =>
  execFileSync(process.execPath, [join(root, "dist", `${name}.js`)], { encoding: "utf8" });

const chunksOf = (root: string): readonly string[] => readdirSync(join(root, "dist/chunks"));

/** What a start of a program reads. */
function loaded(root: string, name: string): ReadonlySet<string> {
  const files = new Set<string>();
  const open = [`${name}.js`];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (files.has(path)) continue;
    files.add(path);
    const text = readFileSync(join(root, "dist", path), "utf8");
    for (const [, from = ""] of text.matchAll(/from\s*"\.\/([^"]+)"/g)) {
      open.push(from.startsWith("chunks/") ? from : `chunks/${from}`);
    }
  }
  return files;
}

describe("joinChunks()", () => {
  it("leaves the programs what they are, over fewer files", async () => {
    const split = await buildSplit();
    const before = starts.map((name) => run(split.root, name));
    const countBefore = chunksOf(split.root).length;
    await joinAll(split);
    expect(starts.map((name) => run(split.root, name))).toEqual(before);
    expect(before[0]).toBe("all\nboth all service and all all1\n");
    expect(chunksOf(split.root).length).toBeLessThan(countBefore);
  });

  it("has a start load no code that costs it more than a file", async () => {
    const split = await buildSplit();
    await joinAll(split);
    const large = chunksOf(split.root).filter(
      (name) => readFileSync(join(split.root, "dist/chunks", name)).length > 1_000_000,
    );
    expect(large).toHaveLength(1);
    for (const name of ["one", "service"]) {
      expect(loaded(split.root, name)).not.toContain(`chunks/${large[0]}`);
    }
    expect(loaded(split.root, "two").size).toBe(3);
    expect(loaded(split.root, "one").size).toBe(2);
  });
});
