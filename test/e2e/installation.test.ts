import { execFileSync } from "node:child_process";
import { cp, mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect, it } from "vitest";
import { edgePolicy } from "../support/gateway.js";
import { HeadgateProcess, placeEnv } from "../support/headgate-process.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const stage = useStage("test");

it("serves, checks and generates from a folder that has no packages", async () => {
  const folder = join(stage.folder, "installed");
  await mkdir(folder);
  await cp("dist", join(folder, "dist"), { recursive: true });
  await cp("package.json", join(folder, "package.json"));
  expect(() => createRequire(join(folder, "dist/cli/main.js")).resolve("pino")).toThrow();
  const headgate = await HeadgateProcess.prepare(stage, {
    policy: edgePolicy(
      "\n  - key: user\n    rate_limit: {name: few, unit: hour, requests_per_unit: 1}\n",
    ),
  });
  const run = (...words: readonly string[]) =>
    stage.spawn({
      name: `headgate ${words[0]}`,
      file: process.execPath,
      args: [join(folder, "dist/cli/main.js"), ...words],
      env: placeEnv(headgate),
    });
  run("serve", "--policy", headgate.policyPath);
  await waitFor("it serves", async () => (await headgate.get("/readyz")).status === 200);
  const ask = () =>
    headgate.postJson({
      domain: "edge",
      descriptors: [{ entries: [{ key: "user", value: "a" }] }],
    });
  expect([(await ask()).status, (await ask()).status]).toEqual([200, 429]);
  for (const words of [
    ["check", "--envoy", "envoy/demo/edge/envoy.yaml"],
    ["generate", "kubernetes", "k8s/policy.yaml", "--out", join(stage.folder, "out")],
  ]) {
    const program = run(...words);
    const ended = await within(`${words[0]} ends`, 30_000, program.exited);
    expect(ended, program.output).toEqual({ code: 0 });
  }
});

it("carries the licence of each package that is in it", async () => {
  const texts = await readFile("dist/LICENSES.txt", "utf8");
  const { bundled, devDependencies } = JSON.parse(await readFile("package.json", "utf8")) as {
    readonly bundled: readonly string[];
    readonly devDependencies: Readonly<Record<string, string>>;
  };
  for (const name of bundled) expect(texts).toContain(`${name} ${devDependencies[name]}, `);
});

// What is bundled has no folder in node_modules that a scanner of the image would find.
it("names each package that is in it in its bill of materials", async () => {
  const path = join(stage.folder, "sbom.json");
  execFileSync(process.execPath, ["tools/sbom.mjs", path], { stdio: "pipe" });
  const { components } = JSON.parse(await readFile(path, "utf8")) as {
    readonly components: readonly { readonly "bom-ref": string }[];
  };
  const named = new Set(components.map((component) => component["bom-ref"]));
  const licences = (await readFile("dist/LICENSES.txt", "utf8")).split(`\n\n${"=".repeat(80)}\n\n`);
  const bundled = licences.map((text) => {
    const [, name, version] = /^(@?[^ @]+) ([^ ,]+), .+/.exec(text) ?? [];
    return `${name}@${version}`;
  });
  expect(bundled.length).toBeGreaterThan(50);
  expect(bundled.filter((one) => !named.has(one))).toEqual([]);
});
