import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../src/policy/parse.js";
import { captureCli } from "../support/cli.js";
import { validateWithEnvoy } from "../support/envoy-validation.js";
import { useStage } from "../support/stage.js";
import { within } from "../support/wait.js";

const main = process.env["E2E_MAIN"] ?? resolve("dist/cli/main.js");
const stage = useStage("file");

/** How long one check by another program may take, in milliseconds. */
const checkMsMax = 60_000;

const yamlFiles = readdirSync("envoy", { recursive: true, encoding: "utf8" })
  // What Prometheus reads beside its configuration has tests of its own.
  .filter((path) => path.endsWith(".yaml") && !path.startsWith("compose/prometheus/"))
  .map((path) => join("envoy", path));
const policyFiles = yamlFiles.filter((path) => path.endsWith("policy.yaml"));
const testFiles = yamlFiles.filter((path) => path.endsWith(".tests.yaml"));
const envoyFiles = yamlFiles.filter((path) => path.endsWith("envoy.yaml"));

describe.concurrent("envoy/", () => {
  it("holds policies and Envoy configurations, and nothing that no test looks at", () => {
    expect([...policyFiles, ...testFiles, ...envoyFiles].sort()).toEqual([...yamlFiles].sort());
    expect(policyFiles).toContain("envoy/demo/policy.yaml");
    expect(envoyFiles).toContain("envoy/demo/edge/envoy.yaml");
  });

  it.each(envoyFiles)("%s is valid for Envoy itself", async (path) => {
    const { exit, output } = await validateWithEnvoy(stage, ["--config-path", path]);
    expect(exit, output).toEqual({ code: 0 });
    expect(output).not.toMatch(/deprecated|unknown field/i);
  });

  it.each(policyFiles)("%s is valid for headgate check", async (path) => {
    const { code, out, err } = await captureCli(["check", path]);
    expect(code, out + err).toBe(0);
  });

  it.each(testFiles)("%s holds for its policy", async (path) => {
    const args = [main, "test", path];
    const program = stage.spawn({ name: "test", file: process.execPath, args });
    const exit = await within("the tests have ended", checkMsMax, program.exited);
    expect(exit, program.output).toEqual({ code: 0 });
  });

  it("asks by the domain and the descriptors that its policy knows", () => {
    const parsed = parsePolicy([
      { file: "", text: readFileSync("envoy/demo/policy.yaml", "utf8") },
    ]);
    if (parsed.kind !== "policy") throw new Error("the policy is invalid");
    const paths = new Set(parsed.rules.map(({ path }) => path.map(({ key }) => key).join(" ")));
    const config = readFileSync("envoy/demo/edge/envoy.yaml", "utf8");
    expect(config).toContain(`domain: ${parsed.domains[0]}`);
    const asked = [...config.matchAll(/# \((.+)\)\n +- actions:/g)];
    const askedPaths = asked.map(([, parts = ""]) => {
      return parts.replaceAll(/ = [^,]+/g, "").replaceAll(",", "");
    });
    expect(askedPaths).toEqual(["remote_address", "plan user", "plan user", "path"]);
    for (const path of askedPaths) expect(paths).toContain(path);
  });
});
