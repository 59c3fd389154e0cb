import { execFile } from "node:child_process";
import { mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { rateLimitConfigTypeUrl } from "../../src/rpc/policy-xds/rate-limit-config.js";
import { captureCli } from "../support/cli.js";
import { type DropIn, debugPage, quickDrain, reported, startDropIn } from "../support/drop-in.js";
import { freePort } from "../support/free-port.js";
import { grpcHealth } from "../support/grpc-health.js";
import { HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";
import { XdsServer } from "../support/xds-server.js";

const policy = `domain: edge
descriptors:
  - {key: user, metadata: {team: edge}, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: wide, metadata: {tier: 1}, rate_limit: {unit: day, requests_per_unit: 50}}
  - {key: narrow, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: few, metadata: {over: true}, rate_limit: {unit: year, requests_per_unit: 1}}
`;

const stage = useStage("file");
let service: DropIn;
let prometheusPort: number;

beforeAll(async () => {
  prometheusPort = await freePort();
  const env = {
    RESPONSE_DYNAMIC_METADATA: "true",
    LIMIT_RESPONSE_HEADERS_ENABLED: "true",
    USE_PROMETHEUS: "true",
    PROMETHEUS_ADDR: `127.0.0.1:${prometheusPort}`,
  };
  service = await startDropIn(stage, { policy, env });
});

/** A descriptor of one entry, in JSON. */
function entry(key: string, value: string): object {
  return { entries: [{ key, value }] };
}

describe("endpoints of envoyproxy/ratelimit", () => {
  it("are gRPC's RateLimitService, and health by the name `ratelimit`", async () => {
    expect(await service.ask("user=grpc")).toBe("OK: 9/10");
    const { grpcPort } = service.headgate;
    expect(await grpcHealth(grpcPort, "ratelimit")).toBe("SERVING");
    expect(await grpcHealth(grpcPort, "")).toBe("SERVING");
    expect(await grpcHealth(grpcPort, "other")).toBe("NOT_FOUND");
  });

  it("are GET /healthcheck and POST /json, with 200, 429 and 400", async () => {
    const { headgate } = service;
    const healthcheck = await headgate.get("/healthcheck");
    expect([healthcheck.status, healthcheck.body.trim()]).toEqual([200, "OK"]);
    const ask = async (body: unknown): Promise<number> => (await headgate.postJson(body)).status;
    const one = { domain: "edge", descriptors: [entry("few", "json")] };
    expect([await ask(one), await ask(one)]).toEqual([200, 429]);
    expect(await ask({ ...one, domain: "" })).toBe(400);
    expect(await ask({ ...one, descriptors: [] })).toBe(400);
    expect(await ask("not a request")).toBe(400);
    expect((await headgate.get("/json")).status).toBe(405);
  });

  it("are /, /stats, /rlconfig and profiles on a debug port; Prometheus on its own", async () => {
    const page = async (path: string): Promise<string> => {
      const { status: code, body } = await debugPage(service.headgate, path);
      return `${code} ${body}`;
    };
    for (const path of ["/stats", "/rlconfig", "/debug/pprof/profile"]) {
      expect(await page("/")).toContain(path);
    }
    expect(await page("/stats")).toContain("ratelimit.service.config_load_success: 1");
    expect(await page("/rlconfig")).toContain(
      "edge.user: unit=YEAR requests_per_unit=10, shadow_mode: false, quota_mode: false\n",
    );
    expect(await page("/debug/pprof/")).toMatch(/^200 /);
    // Off until somebody asks for them, and told so: theirs are open to whoever reaches the port.
    expect(await page("/debug/pprof/profile?seconds=1")).toMatch(/^403 .*HEADGATE_DEBUG_PROFILES/);
    // A trace is one of Go's runtime: the answer says where profiles are.
    expect(await page("/debug/pprof/trace")).toMatch(/^404 .*\/debug\/pprof\//);

    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const { body } = await http.send({ port: prometheusPort, path: "/metrics" });
    expect(body).toContain("ratelimit_service_");
  });

  it("tell the tightest descriptor's limit in headers, in whole seconds", async () => {
    const question = { descriptors: [["wide=headers"], ["narrow=headers"], ["nobody=a"]] };
    const answer = await service.client.ask(question);
    if (answer.kind === "failed") throw new Error(answer.details);
    const headers = answer.response.responseHeadersToAdd.map(({ key, value }) => [key, value]);
    expect(headers).toEqual([
      ["RateLimit-Limit", "2"],
      ["RateLimit-Remaining", "1"],
      ["RateLimit-Reset", "1800"],
    ]);
  });

  it("repeat the question in dynamic metadata, with that of the rules that passed", async () => {
    await service.ask("few=metadata");
    const limit = { requestsPerUnit: 7, unit: "HOUR" };
    const answer = await service.headgate.postJson({
      domain: "edge",
      hitsAddend: 3,
      descriptors: [
        entry("user", "metadata"),
        { ...entry("wide", "metadata"), hitsAddend: "2" },
        { ...entry("other", "metadata"), limit },
        entry("few", "metadata"),
      ],
    });
    expect(JSON.parse(answer.body).dynamicMetadata).toEqual({
      domain: "edge",
      hitsAddend: 3,
      descriptors: [
        { entries: ["user=metadata"] },
        { entries: ["wide=metadata"], hitsAddend: 2 },
        { entries: ["other=metadata"], limit: expect.stringContaining("7") },
        { entries: ["few=metadata"] },
      ],
      metadata: { team: "edge", tier: 1 },
      // Ours alone: which rule refused it.
      rule: "few",
    });
  });
});

/** A policy of one yearly limit, so that answers tell which one is active. */
function yearly(hits: number): string {
  const limit = `{unit: year, requests_per_unit: ${hits}}`;
  return `domain: edge\ndescriptors: [{key: user, rate_limit: ${limit}}]\n`;
}

/** Waits until the limit in force is this one. */
async function seeLimit({ askAll }: DropIn, hits: number): Promise<void> {
  const peek = { descriptors: [{ entries: ["user=peek"], hits: 0n }] };
  await waitFor(`${hits} a year`, async () => {
    return (await askAll(peek)) === `OK: ${hits}/${hits}`;
  });
}

describe("sources of envoyproxy/ratelimit's policy", () => {
  it("are files, swapped or changed in place; a wrong one changes nothing", async () => {
    const root = join(stage.folder, "current");
    for (const [version, hits] of [
      ["v1", 11],
      ["v2", 12],
    ] as const) {
      await mkdir(join(stage.folder, version, "config"), { recursive: true });
      await writeFile(join(stage.folder, version, "config", "edge.yaml"), yearly(hits));
    }
    await symlink("v1", root);
    const swapped = await startDropIn(stage, { env: { RUNTIME_ROOT: root } });
    await seeLimit(swapped, 11);
    await symlink("v2", join(stage.folder, "next"));
    await rename(join(stage.folder, "next"), root);
    await seeLimit(swapped, 12);

    const map = join(stage.folder, "mounted", "config");
    await mkdir(map, { recursive: true });
    await writeFile(join(map, "edge.yaml"), yearly(13));
    const env = {
      RUNTIME_ROOT: join(stage.folder, "mounted"),
      RUNTIME_WATCH_ROOT: "false",
      RUNTIME_IGNOREDOTFILES: "true",
    };
    const inPlace = await startDropIn(stage, { env });
    await seeLimit(inPlace, 13);
    await writeFile(join(map, "edge.yaml"), "domain: [");
    const { headgate } = inPlace;
    await waitFor("it is refused", async () => {
      return (await headgate.metric("headgate_policy_loads_total", { result: "refused" })) > 0;
    });
    await seeLimit(inPlace, 13);
    // Created and removed files count as well as changed ones.
    await writeFile(join(map, "other.yaml"), yearly(14));
    await rm(join(map, "edge.yaml"));
    await seeLimit(inPlace, 14);
  });

  it("may be a control plane, whose sets are taken, or refused with why", async () => {
    const plane = await XdsServer.start(stage);
    const descriptors = [{ key: "user", rateLimit: { requestsPerUnit: 15, unit: 6 } }];
    await plane.hold("1", [{ name: "edge", domain: "edge", descriptors }]);
    const service = await startDropIn(stage, {
      env: { CONFIG_TYPE: "GRPC_XDS_SOTW", CONFIG_GRPC_XDS_SERVER_URL: plane.address },
    });
    await seeLimit(service, 15);
    const ack = await plane.requestWith("the ACK", ({ version }) => version === "1");
    expect(ack.typeUrl).toBe(rateLimitConfigTypeUrl);
    expect(ack.refusal).toBeUndefined();
    await plane.hold("2", [{ name: "edge", domain: "edge", descriptors: [{ key: "" }] }]);
    const nack = await plane.requestWith("the NACK", ({ refusal }) => refusal !== undefined);
    expect([nack.version, nack.refusal]).toEqual(["1", expect.stringContaining("HG130")]);
    await seeLimit(service, 15);
  });
});

/** Runs what a step of the image's build runs, with its paths in folders of this machine. */
async function buildStep(name: string, paths: Readonly<Record<string, string>>): Promise<void> {
  const dockerfile = await readFile("Dockerfile", "utf8");
  let [, command = ""] = new RegExp(`^RUN (.*${name}.*)$`, "m").exec(dockerfile) ?? [];
  for (const [from, to] of Object.entries(paths)) command = command.replaceAll(from, to);
  await promisify(execFile)("sh", ["-c", command]);
}

describe("the image of envoyproxy/ratelimit", () => {
  it("is started as /bin/ratelimit, and so is ours", async () => {
    const program = join(stage.folder, "ratelimit");
    await buildStep("/app/ratelimit", {
      "/app/ratelimit": program,
      "/app/": `${resolve(".")}/`,
      "/nodejs/bin/node": process.execPath,
    });
    const root = join(stage.folder, "image");
    await mkdir(join(root, "config"), { recursive: true });
    await writeFile(join(root, "config", "edge.yaml"), yearly(5));
    const port = await freePort();
    const started = stage.spawn({
      name: "ratelimit",
      file: program,
      args: [],
      env: {
        ...quickDrain,
        RUNTIME_ROOT: root,
        HOST: "127.0.0.1",
        PORT: String(port),
        GRPC_PORT: "0",
        DEBUG_PORT: "0",
        HEADGATE_ADMIN_ADDR: "127.0.0.1:0",
        HEADGATE_CONTROL_ADDR: "127.0.0.1:0",
      },
    });
    await waitFor("it is ready", async () => {
      return (await fetch(`http://127.0.0.1:${port}/healthcheck`)).status === 200;
    });
    started.signal("SIGTERM");
    expect(await within("it ends", 20_000, started.exited)).toEqual({ code: 0 });
  });
});

describe("tools of envoyproxy/ratelimit", () => {
  it("have `headgate check` for config_check, and POST /json for the client", async () => {
    const folder = join(stage.folder, "tools");
    await mkdir(folder);
    await writeFile(join(folder, "a.yaml"), yearly(5));
    expect(await captureCli(["check", folder])).toMatchObject({ code: 0 });
    await writeFile(join(folder, "b.yaml"), yearly(5).replace("user", "more"));
    expect(await captureCli(["check", folder])).toMatchObject({ code: 3 });
    const env = { MERGE_DOMAIN_CONFIG: "true" };
    expect(await captureCli(["check", folder], { env })).toMatchObject({ code: 0 });
    const flagged = await captureCli(["check", folder, "--merge-domain-config"]);
    expect(flagged).toMatchObject({ code: 0 });
    const question = { domain: "edge", descriptors: [entry("user", "tool")] };
    const { body } = await service.headgate.postJson(question);
    expect(JSON.parse(body)).toMatchObject({
      overallCode: "OK",
      statuses: [{ limitRemaining: 9 }],
    });
    expect(reported(await service.client.ask({ descriptors: [["user=tool"]] }))).toBe("OK: 8/10");
  });
});
