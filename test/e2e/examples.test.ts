import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { loadConfig } from "../../src/app/config.js";
import { optionNames, optionRow } from "../../src/app/options.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { requireProgram } from "../support/programs.js";
import { useStage } from "../support/stage.js";
import { within } from "../support/wait.js";
import { readYamlFile } from "../support/yaml-file.js";

const main = process.env["E2E_MAIN"] ?? resolve("dist/cli/main.js");
const stage = useStage("test");

/** How long one check by another program may take, in milliseconds. */
const checkMsMax = 60_000;

const yamlFiles = readdirSync("envoy", { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".yaml"))
  .map((path) => join("envoy", path));
const policyFiles = yamlFiles.filter((path) => path.endsWith("policy.yaml"));
const envoyFiles = yamlFiles.filter((path) => path.endsWith("envoy.yaml"));

describe("envoy/", () => {
  it("holds policies and Envoy configurations, and nothing that no test looks at", () => {
    expect([...policyFiles, ...envoyFiles].sort()).toEqual([...yamlFiles].sort());
    expect(policyFiles).toContain("envoy/demo/policy.yaml");
    expect(envoyFiles).toContain("envoy/demo/envoy.yaml");
  });

  it.each(envoyFiles)("%s is valid for Envoy itself", async (path) => {
    const file = await requireProgram("envoy");
    const args = ["--mode", "validate", "--config-path", path, "--disable-hot-restart"];
    const program = stage.spawn({ name: "envoy", file, args });
    const exit = await within("Envoy has validated", checkMsMax, program.exited);
    expect(exit, program.output).toEqual({ code: 0 });
    expect(program.output).not.toMatch(/deprecated|unknown field/i);
  });

  it.each(policyFiles)("%s is valid for headgate check", async (path) => {
    const args = [main, "check", path];
    const program = stage.spawn({ name: "check", file: process.execPath, args });
    const exit = await within("the check has ended", checkMsMax, program.exited);
    expect(exit, program.output).toEqual({ code: 0 });
  });

  it("asks by the domain and the descriptors that its policy knows", () => {
    const parsed = parsePolicy([
      { file: "", text: readFileSync("envoy/demo/policy.yaml", "utf8") },
    ]);
    if (parsed.kind !== "policy") throw new Error("the policy is invalid");
    const paths = new Set(parsed.rules.map(({ path }) => path.map(({ key }) => key).join(" ")));
    const config = readFileSync("envoy/demo/envoy.yaml", "utf8");
    expect(config).toContain(`domain: ${parsed.domains[0]}`);
    const asked = [...config.matchAll(/- actions:\n((?:\s+.*\n)*?)(?=\s+(?:#|- actions|http_f))/g)];
    const askedPaths = asked.map(([, actions = ""]) => {
      const keys = [...actions.matchAll(/descriptor_key: (\w+)/g)].map(([, key]) => key);
      return keys.length === 0 ? "remote_address" : keys.join(" ");
    });
    expect(askedPaths).toEqual(["remote_address", "plan user", "plan user", "path"]);
    for (const path of askedPaths) expect(paths).toContain(path);
  });

  it("has one Envoy configuration for the demo and for containers, but for addresses", () => {
    const demo = parse(readFileSync("envoy/demo/envoy.yaml", "utf8"));
    const compose = readFileSync("envoy/compose/envoy.yaml", "utf8")
      .replace("address: 0.0.0.0, port_value: 10000", "address: 127.0.0.1, port_value: 10000")
      .replace("address: headgate, port_value: 8081", "address: 127.0.0.1, port_value: 8081")
      .replace("address: upstream, port_value: 10080", "address: 127.0.0.1, port_value: 10080");
    expect(parse(compose)).toEqual(demo);
  });
});

const composeFile = z.object({
  services: z.record(
    z.string(),
    z.object({
      image: z.string(),
      build: z.object({ context: z.string(), dockerfile_inline: z.string() }).optional(),
      environment: z.record(z.string(), z.string()).optional(),
      volumes: z.array(z.string()).optional(),
      ports: z.array(z.string()).optional(),
      command: z.array(z.string()).optional(),
      depends_on: z.record(z.string(), z.object({ condition: z.string() })).optional(),
      stop_grace_period: z.string().optional(),
    }),
  ),
});

describe("docker-compose.yml", () => {
  const { services } = composeFile.parse(readYamlFile("docker-compose.yml")[0]);
  const { headgate, envoy } = services;

  /** Where a path of the container lies in this repository. */
  function onHost(volumes: readonly string[] | undefined, path: string): string {
    for (const volume of volumes ?? []) {
      const [source = "", target = ""] = volume.split(":");
      if (path.startsWith(`${target}/`)) return join(source, path.slice(target.length));
    }
    throw new Error(`${path} is not mounted`);
  }

  it("mounts what exists, and publishes on loopback alone", () => {
    for (const { volumes = [], ports = [] } of Object.values(services)) {
      for (const volume of volumes) {
        expect(existsSync(volume.split(":")[0] ?? ""), volume).toBe(true);
        expect(volume.endsWith(":ro"), volume).toBe(true);
      }
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    }
  });

  it("waits for services that it has, and asks those by name", () => {
    const names = Object.keys(services);
    for (const { depends_on = {} } of Object.values(services)) {
      for (const name of Object.keys(depends_on)) expect(names).toContain(name);
    }
    const config = readFileSync(onHost(envoy?.volumes, envoy?.command?.[2] ?? ""), "utf8");
    for (const [, name] of config.matchAll(/address: ([a-z]+), port_value/g)) {
      expect(names).toContain(name);
    }
  });

  it("sets options that Headgate has, and a policy that is there", () => {
    const env = headgate?.environment ?? {};
    const known = optionNames.map((name) => optionRow(name).env);
    for (const name of Object.keys(env)) expect(known).toContain(name);
    const loaded = loadConfig({ flags: {}, env });
    if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
    const { config } = loaded;
    expect(config.store.kind).toBe("redis");
    expect(existsSync(onHost(headgate?.volumes, config.policyPath))).toBe(true);
    expect(headgate?.ports?.every((port) => port.endsWith(`:${config.port}`))).toBe(true);
    const graceSeconds = Number(headgate?.stop_grace_period?.replace("s", ""));
    expect(graceSeconds * 1_000).toBeGreaterThan(config.drainDelayMs + config.drainGraceMs);
  });

  it("builds from files, scripts and a program that this repository has", () => {
    const dockerfile = headgate?.build?.dockerfile_inline ?? "";
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(
      ([, sources = ""]) => sources.split(" "),
    );
    expect(copied).not.toEqual([]);
    for (const source of copied) expect(existsSync(source), source).toBe(true);
    const manifest = z
      .object({ scripts: z.record(z.string(), z.string()), bin: z.record(z.string(), z.string()) })
      .parse(JSON.parse(readFileSync("package.json", "utf8")));
    for (const [, script = ""] of dockerfile.matchAll(/npm run (\S+)/g)) {
      expect(Object.keys(manifest.scripts)).toContain(script);
    }
    expect(dockerfile).toContain(`ENTRYPOINT ["node", "${manifest.bin["headgate"]}"]`);
    expect(dockerfile).toMatch(/^USER 65532:65532$/m);
  });
});
