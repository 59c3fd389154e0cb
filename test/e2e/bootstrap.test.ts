import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { waitFor } from "../support/wait.js";

const sources = fileURLToPath(new URL("../../", import.meta.url));
const parts = [
  "tools/bootstrap.mjs",
  "tools/prepare.mjs",
  "tools/child.mjs",
  "src/programs/lock.mjs",
];

/** The npm of the small project: notes each call, and does what the real one is for. */
const npm = `
const { appendFileSync, cpSync, existsSync, mkdirSync, writeFileSync } = require("node:fs");
const words = process.argv.slice(2);
const name = words[0] === "ci" ? "ci" : words[2];
appendFileSync("calls", name + "\\n");
if (existsSync("broken-" + name)) { console.error("no luck with " + name); process.exit(1); }
if (name === "ci") mkdirSync("node_modules", { recursive: true });
if (name === "generate") {
  mkdirSync("src/gen", { recursive: true });
  writeFileSync("src/gen/a.js", "generated");
}
if (name === "compile") cpSync("src/main.js", "dist/cli/main.js");
`;

/** The program: says that it runs, then does as its first argument says. */
const main = `
const { writeFileSync } = require("node:fs");
const [command, wish, ...rest] = process.argv.slice(2);
if (wish === "exit") process.exit(Number(rest[0]));
let count = 0;
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    count += 1;
    setImmediate(() => process.exit(40 + count));
  });
}
setInterval(() => {}, 1000);
writeFileSync("running", String(process.pid));
`;

let root: string;
const children: ChildProcess[] = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "headgate-bootstrap-"));
  for (const part of parts) cpSync(join(sources, part), join(root, part));
  for (const folder of ["proto", "bin"]) mkdirSync(join(root, folder));
  write("bin/npm-cli.js", npm);
  write("src/main.js", main);
  write("proto/buf.gen.yaml", "version: v2");
  write("package-lock.json", '{"packages": {}}');
});

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(root, { recursive: true });
});

function write(path: string, text: string): void {
  writeFileSync(join(root, path), text);
}

function start(args: readonly string[]): { child: ChildProcess; output: () => string } {
  // From another folder, on purpose.
  const child = spawn(process.execPath, [join(root, "tools/bootstrap.mjs"), ...args], {
    cwd: tmpdir(),
    env: { ...process.env, npm_execpath: join(root, "bin/npm-cli.js") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  return { child, output: () => output };
}

async function run(...args: readonly string[]): Promise<{ code: number; output: string }> {
  const { child, output } = start(args);
  const [code] = await once(child, "close");
  return { code, output: output() };
}

/** The steps that npm was asked for since the last look. */
function steps(): readonly string[] {
  const path = join(root, "calls");
  const calls = existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
  rmSync(path, { force: true });
  return calls;
}

describe("bootstrap.mjs", () => {
  it("installs, generates, builds, runs the command, and ends with its exit code", async () => {
    const { code, output } = await run("serve", "exit", "7");
    expect(code).toBe(7);
    expect(steps()).toEqual(["ci", "generate", "compile"]);
    expect(output).toMatch(/^install: npm ci .* \d+\.\d s\ngenerate: .* s\nbuild: .* s\n$/);
  });

  it("does nothing twice, and each step again when its inputs or its outputs change", async () => {
    await run("serve", "exit", "0");
    steps();
    const changes: readonly [change: () => void, expected: readonly string[]][] = [
      [() => undefined, []],
      [() => appendFileSync(join(root, "src/main.js"), "// more"), ["compile"]],
      [() => write("src/new.js", ""), ["compile"]],
      [() => rmSync(join(root, "dist/cli/main.js")), ["compile"]],
      [() => appendFileSync(join(root, "dist/cli/main.js"), "// by hand"), ["compile"]],
      [() => write("proto/buf.gen.yaml", "version: v3"), ["generate"]],
      [() => rmSync(join(root, "src/gen"), { recursive: true }), ["generate"]],
      [() => write("package-lock.json", '{"packages": {"": {}}}'), ["ci", "generate", "compile"]],
      [() => undefined, []],
    ];
    for (const [change, expected] of changes) {
      change();
      await run("serve", "exit", "0");
      expect(steps()).toEqual(expected);
    }
  });

  it("takes over packages that npm installed from the same lock file", async () => {
    const packages = '{"packages": {"node_modules/a": {"version": "1.0.0"}}}';
    write("package-lock.json", packages);
    mkdirSync(join(root, "node_modules"));
    write("node_modules/.package-lock.json", packages);
    await run("serve", "exit", "0");
    expect(steps()).toEqual(["generate", "compile"]);
    write("package-lock.json", '{"packages": {"node_modules/a": {"version": "1.0.1"}}}');
    await run("serve", "exit", "0");
    expect(steps()).toEqual(["ci", "generate", "compile"]);
  });

  it("prepares once when two commands start together", async () => {
    await Promise.all([run("serve", "exit", "0"), run("serve", "exit", "0")]);
    expect(steps()).toEqual(["ci", "generate", "compile"]);
  });

  it("prepares what `npm pack` packs, and takes the bill of materials for no change", async () => {
    const sbom =
      'import { writeFileSync } from "node:fs";\nwriteFileSync("dist/sbom.cdx.json", "{}");';
    write("tools/sbom.mjs", sbom);
    expect(await run("pack")).toMatchObject({ code: 0 });
    expect(steps()).toEqual(["ci", "generate", "compile"]);
    expect(existsSync(join(root, "dist/sbom.cdx.json"))).toBe(true);
    await run("serve", "exit", "0");
    expect(steps()).toEqual([]);
  });

  it("shows what npm printed when a step fails, and what to do", async () => {
    write("broken-ci", "");
    const { code, output } = await run("test");
    expect(code).toBe(1);
    expect(output).toContain("no luck with ci\ninstall failed.\nnpm could not install");
    expect(output).toContain("0 passed, 1 failed\n");
  });

  it("refuses a command that it does not know", async () => {
    const { code, output } = await run("toString");
    expect(code).toBe(2);
    expect(output).toMatch(/^usage: .*demo\|serve\|dev\|test\|all\|soak\|bench\|mutate\|pack/);
  });

  it("hands a signal on, waits for the program's own end, and leaves no child", async () => {
    const { child } = start(["serve", "wait"]);
    await waitFor("the program runs", () => existsSync(join(root, "running")));
    child.kill("SIGINT");
    const [code] = await once(child, "close");
    expect(code).toBe(41);
    const pid = Number(readFileSync(join(root, "running"), "utf8"));
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });
});
