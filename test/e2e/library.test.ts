import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { markedBlocks } from "../support/docs.js";
import { useStage } from "../support/stage.js";

const stage = useStage("file");
const run = promisify(execFile);

/** A project that has installed the package, and nothing of this repository. */
let project: string;

beforeAll(async () => {
  const quiet = ["--offline", "--no-audit", "--no-fund", "--no-update-notifier"];
  const cache = ["--cache", join(stage.folder, "npm-cache")];
  const packing = ["pack", "--ignore-scripts", "--json", "--pack-destination", stage.folder];
  const packed = await run("npm", [...packing, ...quiet, ...cache], { cwd: resolve(".") });
  const [{ filename } = expect.fail("nothing is packed")] = z
    .array(z.object({ filename: z.string() }))
    .parse(JSON.parse(packed.stdout));
  project = join(stage.folder, "project");
  await mkdir(project);
  await writeFile(join(project, "package.json"), '{"type": "module", "private": true}');
  const tarball = join(stage.folder, filename);
  await run("npm", ["install", tarball, ...quiet, ...cache], { cwd: project });
});

/** Compiles the project as strictly as there are settings for it. */
async function compile(): Promise<string> {
  const config = {
    compilerOptions: {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noPropertyAccessFromIndexSignature: true,
      isolatedModules: true,
      verbatimModuleSyntax: true,
      skipLibCheck: false,
      module: "NodeNext",
      target: "ES2022",
      lib: ["ES2022", "DOM"],
      types: [],
      outDir: "out",
    },
    include: ["*.ts"],
  };
  await writeFile(join(project, "tsconfig.json"), JSON.stringify(config));
  const compiler = resolve("node_modules/typescript/bin/tsc");
  const { stdout } = await run(process.execPath, [compiler, "-p", "."], { cwd: project }).catch(
    (error: { stdout: string }) => error,
  );
  return stdout;
}

const consumer = `
import { AdmissionError, createAdmission, createWindowLimiter, retry } from "headgate/client";
import { createHostLoad } from "headgate/host";

const users = createAdmission({
  name: "users",
  concurrency: { law: "fixed", initial: 1 },
  breaker: {},
  deadline: { timeoutMs: 1_000 },
});
const first = users.run(async ({ headers, remainingMs = 0 }) => {
  await new Promise((resolve) => setTimeout(resolve, 10));
  return [headers["x-request-priority"], remainingMs > 0];
});
const second = await users.run(async () => 2).catch((error: unknown) =>
  error instanceof AdmissionError ? error.reason : "else",
);
let failures = 2;
const third = await retry(async ({ number }) => {
  if (failures-- > 0) throw new Error("not yet");
  return number;
}, { baseMs: 1 });
await first;
// Nothing but the library keeps the process alive here, and at the end nothing does.
const stuck = await users.run(() => new Promise(() => {}), { timeoutMs: 20 }).catch(
  (error: unknown) => error instanceof Error && error.name,
);
const window = createWindowLimiter();
const { value, control } = await window.runRateLimited(() => "done");
control.success();
const { memoryRatio = 2 } = createHostLoad();
const all = [await first, second, third, stuck, value];
console.log(JSON.stringify([...all, users.snapshot().outcomes.served, memoryRatio < 1]));
`;

/** What the host is read with. */
const hostModules: ReadonlySet<string> = new Set(["node:fs", "node:perf_hooks"]);

describe("the library of an installed package", () => {
  it("does what its guide shows", async () => {
    const service = createServer((_, response) => response.end("one order")).listen(0, "127.0.0.1");
    stage.atEnd(() => void service.close());
    await once(service, "listening");
    const { port } = z.object({ port: z.number() }).parse(service.address());
    const examples = markedBlocks("client").map(({ text }, i) => ({ name: `example-${i}`, text }));
    expect(examples.length).toBeGreaterThanOrEqual(5);
    for (const { name, text } of examples) {
      const here = text.replaceAll("http://orders.example", `http://127.0.0.1:${port}`);
      await writeFile(join(project, `${name}.ts`), here);
    }
    expect(await compile()).toBe("");
    for (const { name, text } of examples) {
      const { stdout } = await run(process.execPath, [`out/${name}.js`], { cwd: project });
      const printed = [...text.matchAll(/\/\/ prints (.+)$/gm)].map(([, line]) => line);
      expect(stdout.trimEnd().split("\n"), text).toEqual(printed);
    }
  });

  it("compiles with strict settings and without other types, and runs", async () => {
    await writeFile(join(project, "consumer.ts"), consumer);
    expect(await compile()).toBe("");
    // Far below the 30 s for which the permit of work that is stuck is held.
    const options = { cwd: project, timeout: 20_000 };
    const { stdout, stderr } = await run(process.execPath, ["out/consumer.js"], options);
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual([
      ["normal", true],
      "concurrency",
      3,
      "TimeoutError",
      "done",
      1,
      true,
    ]);
  });

  it("has types that a compiler reads, so that a wrong option is an error", async () => {
    const wrong = 'import { createAdmission } from "headgate/client";\n';
    await writeFile(join(project, "wrong.ts"), `${wrong}createAdmission({name: 1, retry: {}});\n`);
    expect(await compile()).toContain("error TS2322: Type 'number' is not assignable");
    await writeFile(join(project, "wrong.ts"), "export {};");
  });

  it("needs no file of the program, no package and, but for the host's, no module", async () => {
    const library = join(project, "node_modules/headgate/dist/library");
    const files = await readdir(library, { recursive: true });
    const modules = files.filter((name) => name.startsWith("client/index") && name.endsWith(".js"));
    expect(modules).toEqual(["client/index.js"]);
    const texts = files.filter((name) => /\.(?:js|d\.ts)$/.test(name));
    for (const name of texts) {
      const text = await readFile(join(library, name), "utf8");
      const imported = [...text.matchAll(/^(?:import|export) [^;]*? from "([^"]+)"/gm)];
      for (const [, target = ""] of imported) {
        if (name === "client/host.js" && hostModules.has(target)) continue;
        expect(resolve(library, name, "..", target), name).toMatch(library);
      }
    }
  });

  it("leaves a bundle without what it does not use", async () => {
    const bundled = async (code: string): Promise<number> => {
      const stdin = { contents: code, resolveDir: project };
      const options = { bundle: true, write: false, format: "esm", minify: true } as const;
      const { outputFiles } = await build({ stdin, ...options, logLevel: "silent" });
      return outputFiles[0]?.contents.length ?? 0;
    };
    const from = 'from "headgate/client"';
    expect(await bundled('import "headgate/client";')).toBeLessThan(100);
    const error = await bundled(`import { AdmissionError } ${from}; new AdmissionError();`);
    expect(error).toBeLessThan(4_000);
    const breaker = await bundled(`import { createBreaker } ${from}; createBreaker();`);
    expect(breaker).toBeLessThan(7_000);
    const whole = await bundled(`import { createAdmission } ${from}; createAdmission({});`);
    expect(whole).toBeLessThan(40_000);
    expect(breaker).toBeLessThan(whole / 4);
  });
});
