import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { loadConfig } from "../../src/app/config/config.js";
import { optionNames, optionRow } from "../../src/app/options/options.js";
import { captureCli } from "../support/cli.js";
import {
  ComposeTopology,
  composeSchema,
  composeServices,
  internalNetworks,
  onHost,
  readComposeFile,
  recordedComposeModel,
  servicesNamed,
} from "../support/compose.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { requireProgram } from "../support/programs.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const stage = useStage("test");
const services = composeServices();
const { "headgate-1": headgate = expect.fail("there is no headgate-1") } = services;

describe("docker-compose.yml", () => {
  it("is valid by the published schema of compose files", () => {
    const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false });
    const validate = ajv.compile(composeSchema());
    validate(readComposeFile());
    expect(validate.errors ?? []).toEqual([]);
    expect(validate({ services: { a: { image: 1, portz: [] } } })).toBe(false);
  });

  it("is read by Compose's own parser as it is read here", () => {
    const own = Object.entries(services).map(([name, given]) => {
      const { build, networks = { default: { aliases: [] } }, ...rest } = given;
      const interpolated: object = JSON.parse(
        JSON.stringify(rest).replaceAll(/\$\{\w+:-([^}]*)\}/g, "$1"),
      );
      const built =
        build === undefined ? {} : { build: { context: build, dockerfile: "Dockerfile" } };
      return [name, { ...interpolated, ...built, networks }];
    });
    expect(Object.fromEntries(own)).toEqual(recordedComposeModel());
  });

  it("mounts what exists, for reading, keeps Redis's data, and publishes on loopback", () => {
    for (const [name, { volumes = [], ports = [] }] of Object.entries(services)) {
      for (const volume of volumes) {
        if (name === "redis") {
          // What operators change is not short-lived.
          expect(volume).toBe("redis:/data");
          expect(services["redis"]?.command?.join(" ")).toContain("--appendonly yes");
          continue;
        }
        expect(existsSync(volume.split(":")[0] ?? ""), volume).toBe(true);
        expect(volume.endsWith(":ro"), volume).toBe(true);
      }
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    }
    const published = Object.values(services).flatMap(({ ports = [] }) => ports);
    const onLoopback = published.map((port) => port.split(":")[1]);
    expect(new Set(onLoopback).size).toBe(published.length);
  });

  it("gives nobody a capability, and nobody more than what it began with", () => {
    for (const [name, { cap_drop: dropped, security_opt: options }] of Object.entries(services)) {
      // What redis and its entry do as root is to become somebody else.
      if (name === "redis") continue;
      expect(dropped, name).toEqual(["ALL"]);
      expect(options, name).toEqual(["no-new-privileges:true"]);
    }
    for (const name of servicesNamed("headgate")) {
      expect(services[name]).toMatchObject({ read_only: true });
    }
  });

  it("starts nothing with a password that everybody knows", () => {
    const { grafana, redis, ...others } = services;
    // Grafana's own administrator is called admin, with that for a password.
    expect(grafana?.environment).toMatchObject({
      GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION: "true",
      GF_AUTH_BASIC_ENABLED: "false",
    });
    // Redis has none, and no neighbours but those that it is for.
    const own = Object.keys(redis?.networks ?? {});
    expect(redis?.ports).toBeUndefined();
    expect(own).not.toEqual([]);
    for (const name of own) expect(internalNetworks()).toContain(name);
    const near = Object.entries(others).filter(([, { networks = {} }]) => {
      return own.some((name) => name in networks);
    });
    expect(near.map(([name]) => name)).toEqual(servicesNamed("headgate"));
  });

  it("waits for services that it has", () => {
    const names = Object.keys(services);
    for (const { depends_on = {} } of Object.values(services)) {
      for (const name of Object.keys(depends_on)) expect(names).toContain(name);
    }
    expect(servicesNamed("headgate")).toEqual(["headgate-1", "headgate-2"]);
  });

  it("sets options that Headgate has, and a policy that is there", () => {
    const env = headgate.environment ?? {};
    const known = optionNames.map((name) => optionRow(name).env);
    for (const name of Object.keys(env)) expect(known).toContain(name);
    const loaded = loadConfig({ flags: {}, env });
    if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
    const { config } = loaded;
    expect(config.store.kind).toBe("redis");
    expect(config.replicas).toBe(servicesNamed("headgate").length);
    expect(existsSync(onHost(headgate, config.policyPath))).toBe(true);
    expect(headgate.ports?.every((port) => port.endsWith(`:${config.port}`))).toBe(true);
    const graceSeconds = Number(headgate.stop_grace_period?.replace("s", ""));
    expect(graceSeconds * 1_000).toBeGreaterThan(config.drainDelayMs + config.drainGraceMs);
  });

  it("starts Envoys from what headgate makes of the policy", async () => {
    const folder = "envoy/compose";
    const isUpdating = process.env["UPDATE_GOLDEN"] === "1";
    const { code, out, err } = await captureCli([
      ...["generate", "envoy", `${folder}/policy.yaml`, "--role", "edge", "--out", folder],
      isUpdating ? "--force" : "--check",
    ]);
    expect(code, out + err).toBe(0);
    for (const name of ["envoy-1", "envoy-2"]) {
      const { [name]: envoy = expect.fail(`there is no ${name}`) } = services;
      const path = envoy.command?.[envoy.command.indexOf("--config-path") + 1] ?? "";
      expect(onHost(envoy, path)).toBe(`${folder}/edge/envoy.yaml`);
    }
  });

  it("lets Grafana find Prometheus, and the dashboards beside their provider", () => {
    const [source] = z
      .object({ datasources: z.array(z.object({ url: z.string() })) })
      .parse(readYaml("envoy/compose/grafana/datasources/prometheus.yml")).datasources;
    expect(Object.keys(services)).toContain(new URL(source?.url ?? "").hostname);
    const [provider] = z
      .object({ providers: z.array(z.object({ options: z.object({ path: z.string() }) })) })
      .parse(readYaml("envoy/compose/grafana/dashboards/provider.yml")).providers;
    const { grafana = expect.fail("there is no grafana") } = services;
    expect(onHost(grafana, provider?.options.path ?? "")).toBe("envoy/compose/grafana/dashboards");
  });
});

describe("images of docker-compose.yml", () => {
  it("are our own, or of a digest (Envoy's: a version), and a variable replaces each", () => {
    const others = Object.values(services).filter(({ image }) => image !== "headgate:local");
    expect(others).not.toEqual([]);
    for (const { image } of others) {
      const digest = image.includes("envoyproxy/") ? "" : "@sha256:[0-9a-f]{64}";
      expect(image).toMatch(new RegExp(`^\\$\\{[A-Z]+_IMAGE:-[a-z/]+:v?\\d[\\w.-]*${digest}\\}$`));
    }
  });
});

describe("what docker-compose.yml starts, as processes", () => {
  it("shares limits over Redis, and is scraped as Prometheus is told to", async () => {
    const topology = await ComposeTopology.start(stage);
    const envoys = [await topology.port("envoy-1", 10_000), await topology.port("envoy-2", 10_000)];
    const startedMs = performance.now();
    const statuses: number[][] = [[], []];
    const askBoth = async (): Promise<void> => {
      for (const [index, port] of envoys.entries()) {
        const { status } = await topology.http.send({ port, headers: { "x-user": "you" } });
        statuses[index]?.push(status);
      }
    };
    await waitFor("both refuse", async () => {
      await askBoth();
      return statuses.every((own) => own.includes(429));
    });
    // Five at once, then one every two seconds, over all of them.
    const drained = Math.floor((performance.now() - startedMs) / 2_000) + 1;
    const passed = statuses.flat().filter((status) => status === 200);
    expect(passed.length).toBeGreaterThan(0);
    expect(passed.length).toBeLessThanOrEqual(5 + drained);
    await seeBothAsked(topology, envoys[0] ?? 0);
    for (const [index, name] of ["envoy-1", "envoy-2"].entries()) {
      const port = await topology.port(name, 9_901);
      const asked = envoys[index] ?? 0;
      await waitFor(`${name} was given its share`, async () => {
        // Who never had a request for a service has no share of it.
        await topology.http.send({ port: asked, headers: { "x-user": randomUUID() } });
        const { body } = await topology.http.send({ port, path: "/runtime" });
        return body.includes("circuit_breakers.upstream.default.max_requests");
      });
    }
    await seeScrapes(topology);
  });
});

/** Questions of one kind that each replica gets at least, of a hundred: chance gives about 50. */
const askedMin = 20;

/** Replicas in turn would get all questions of one kind each, as each request asks for both. */
async function seeBothAsked(topology: ComposeTopology, port: number): Promise<void> {
  const counts = async () => {
    const names = ["headgate_requests_total", "headgate_ext_proc_streams_total"];
    const asked = topology.headgates.flatMap((one) => names.map((name) => one.metric(name)));
    return Promise.all(asked);
  };
  const before = await counts();
  for (let i = 0; i < 100; i += 1) await topology.http.send({ port });
  const after = await counts();
  const gained = after.map((count, index) => count - (before[index] ?? 0));
  for (const count of gained) expect(count, `${gained}`).toBeGreaterThanOrEqual(askedMin);
}

const prometheusConfig = z.object({
  scrape_configs: z.array(
    z.object({
      job_name: z.string(),
      metrics_path: z.string().default("/metrics"),
      static_configs: z.array(z.object({ targets: z.array(z.string()) })),
    }),
  ),
});

/** Asks every target as Prometheus would. */
async function seeScrapes(topology: ComposeTopology): Promise<void> {
  const config = prometheusConfig.parse(readYaml("envoy/compose/prometheus/prometheus.yml"));
  const seen: string[] = [];
  for (const { job_name: job, metrics_path: path, static_configs } of config.scrape_configs) {
    for (const target of static_configs.flatMap(({ targets }) => targets)) {
      const { hostname, port } = new URL(`http://${target}`);
      expect(Object.keys(services)).toContain(hostname);
      const answer = await topology.http.send({
        port: await topology.port(hostname, Number(port)),
        path,
      });
      expect(answer.status, target).toBe(200);
      const names = new Set([...answer.body.matchAll(/^(\w+)(?:\{.*\})? \S+/gm)].map(([, n]) => n));
      expect(names, target).toContain(
        job === "envoy" ? "envoy_cluster_upstream_rq_completed" : "headgate_ext_proc_streams_total",
      );
      seen.push(target);
    }
  }
  const watched = [...servicesNamed("headgate"), "envoy-1", "envoy-2"];
  expect(seen.map((target) => target.split(":")[0])).toEqual(watched);
}

function readYaml(path: string): unknown {
  return parse(readFileSync(path, "utf8"));
}

describe("Dockerfile", () => {
  const dockerfile = readFileSync("Dockerfile", "utf8");
  const checkMsMax = 60_000;
  /** What stands after FROM, each an argument with its default. */
  const baseImages = [...dockerfile.matchAll(/^FROM \$\{(\w+)\}/gm)].map(([, name]) => {
    return new RegExp(`^ARG ${name}=(.*)$`, "m").exec(dockerfile)?.[1] ?? "";
  });

  it("has nothing that hadolint minds", async () => {
    const file = await requireProgram("hadolint");
    const program = stage.spawn({ name: "hadolint", file, args: ["Dockerfile"] });
    const exit = await within("hadolint has ended", checkMsMax, program.exited);
    expect(exit, program.output).toEqual({ code: 0 });
  });

  it("builds from files and scripts that this repository has, and that are sent along", () => {
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(
      ([, sources = ""]) => sources.split(" "),
    );
    expect(copied).not.toEqual([]);
    const sent = readFileSync(".dockerignore", "utf8").split("\n");
    expect(sent).toContain("*");
    for (const source of copied) {
      expect(existsSync(source), source).toBe(true);
      expect(sent).toContain(`!${source}`);
    }
    const manifest = z
      .object({ scripts: z.record(z.string(), z.string()), bin: z.record(z.string(), z.string()) })
      .parse(JSON.parse(readFileSync("package.json", "utf8")));
    for (const [, script = ""] of dockerfile.matchAll(/npm run (\S+)/g)) {
      expect(Object.keys(manifest.scripts)).toContain(script);
    }
    const program = `ENTRYPOINT ["/nodejs/bin/node", "/app/${manifest.bin["headgate"]}"]`;
    expect(dockerfile).toContain(program);
  });

  it("stands on images that no registry can move, each of which a build argument replaces", () => {
    for (const image of baseImages)
      expect(image).toMatch(/^[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/);
  });

  it("ends in an image without a shell, as a user that may do nothing", () => {
    expect(baseImages).toHaveLength(2);
    expect(baseImages[1]).toMatch(/^gcr\.io\/distroless\/.*:nonroot@/);
    const last = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));
    expect(last).toMatch(/^USER 65532:65532$/m);
    // Nothing there could run a line of a shell's.
    expect(last).not.toMatch(/^RUN /m);
    expect(last).not.toMatch(/^(?:CMD|ENTRYPOINT) (?!\[)/m);
  });

  it("asks for its health with Node, which says so by its exit code", async () => {
    const [, list = ""] = /^HEALTHCHECK[^[]*(\[.*\])$/m.exec(dockerfile) ?? [];
    const [program, ...args] = z.array(z.string()).parse(JSON.parse(list));
    expect(program).toBe("/nodejs/bin/node");
    const policy = "domain: shop\ndescriptors: []\n";
    const quick = { HEADGATE_DRAIN_DELAY_MS: "0" };
    const replica = await HostedHeadgate.start(stage, { policy, env: quick });
    const check = async (port: number) => {
      const env = { PORT: String(port) };
      const run = stage.spawn({ name: "health", file: process.execPath, args, env });
      return within("it has ended", checkMsMax, run.exited);
    };
    expect(await check(replica.httpPort)).toEqual({ code: 0 });
    await replica.terminate();
    expect(await check(replica.httpPort)).toEqual({ code: 1 });
  });
});
