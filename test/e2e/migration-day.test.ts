import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.js";
import { debugPage, quickDrain, startDropIn, statistics } from "../support/drop-in.js";
import { Envoy } from "../support/envoy.js";
import { fromHeader } from "../support/envoy-config.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { redisEnv, startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { useStage } from "../support/stage.js";
import { startUpstream } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";

/** By the year, so that nothing comes back while the day lasts. */
const yearly = (count: number): string => `rate_limit: {unit: year, requests_per_unit: ${count}}`;

/** What the reference reads: three files of one domain. */
const usersThere = `domain: edge
descriptors:
  - {key: user, ${yearly(4)}}
  - {key: client, ${yearly(1_000)}}
`;
const accountsThere = `domain: edge
descriptors: [{key: account, ${yearly(5)}}]
`;
const tokens = (more = ""): string =>
  `key: tokens, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 2${more}}`;
const tokensThere = `domain: edge
descriptors: [{${tokens()}}]
`;

function policyOf(name: string, ...descriptors: readonly string[]): string {
  return `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: ${name}}
spec:
  rateLimits:
    - domain: edge
      descriptors:
${descriptors.map((one) => `        - {${one}}\n`).join("")}`;
}

const usersHere = policyOf("users", `key: user, ${yearly(4)}`, `key: client, ${yearly(1_000)}`);
const accountsBeside = policyOf("accounts", `key: account, shadow_mode: true, ${yearly(5)}`);
const accountsHere = policyOf("accounts", `key: account, ${yearly(5)}`);
const tokensHere = policyOf("tokens", tokens(", charge: settle"));

const stage = useStage("file");
const http = new HttpClient();
let redis: RedisServer;
let headgate: HostedHeadgate;
let envoy: Envoy;
let config: string;

beforeAll(async () => {
  stage.atEnd(() => http.close());
  config = join(stage.folder, "runtime/ratelimit/config");
  await mkdir(config, { recursive: true });
  await put("users.yaml", usersThere);
  await put("accounts.yaml", accountsThere);
  await put("tokens.yaml", tokensThere);
  redis = await startRedis(stage);
  // The reference's names alone, as its compose file has them.
  const env = {
    ...quickDrain,
    USE_STATSD: "false",
    LOG_LEVEL: "debug",
    REDIS_SOCKET_TYPE: "tcp",
    REDIS_URL: `127.0.0.1:${redis.port}`,
    RUNTIME_ROOT: join(stage.folder, "runtime"),
    RUNTIME_SUBDIRECTORY: "ratelimit",
    RUNTIME_WATCH_ROOT: "false",
    MERGE_DOMAIN_CONFIG: "true",
  };
  const upstream = await startUpstream(stage);
  headgate = await HostedHeadgate.start(stage, { env });
  envoy = await Envoy.start(stage, {
    upstreamPort: upstream.port,
    headgatePorts: [headgate.grpcPort],
    rateLimits: [
      ...["user", "account", "client"].map((key) => ({ actions: [fromHeader(key, key)] })),
      { actions: [fromHeader("tokens", "tokens")], hits_addend: { number: 0 } },
      {
        actions: [fromHeader("tokens", "tokens")],
        hits_addend: { number: 1 },
        apply_on_stream_done: true,
      },
    ],
  });
});

/** Puts a file in its place at once: the service reads all that stands beside it. */
async function put(name: string, text: string): Promise<void> {
  const next = join(stage.folder, `next-${name}`);
  await writeFile(next, text);
  await rename(next, join(config, name));
}

/** The statuses of so many requests through Envoy. */
async function ask(count: number, headers: Readonly<Record<string, string>>): Promise<string> {
  const statuses: number[] = [];
  for (let i = 0; i < count; i += 1) {
    statuses.push((await http.send({ port: envoy.port, headers })).status);
  }
  return statuses.join(" ");
}

/** The same of requests that cost something after each of them, which is waited for. */
async function askSettled(count: number, value: string): Promise<string> {
  const statuses: string[] = [];
  for (let i = 0; i < count; i += 1) {
    const before = (await statistic("tokens.total_hits")) ?? 0;
    statuses.push(await ask(1, { tokens: value }));
    const after = async () => (await statistic("tokens.total_hits")) === before + 1;
    await waitFor("the cost has arrived", after);
  }
  return statuses.join(" ");
}

let clientCount = 0;

/** Replaces a file while a client goes on asking; every one of its requests must pass. */
async function move(name: string, text: string): Promise<void> {
  const loads = () => headgate.metric("headgate_policy_loads_total", { result: "loaded" });
  const before = await loads();
  await put(name, text);
  await waitFor("the file is active", async () => {
    expect(await ask(3, { client: "steady" })).toBe("200 200 200");
    clientCount += 3;
    return (await loads()) > before;
  });
}

async function limitsThere(): Promise<readonly string[]> {
  const { body } = await debugPage(headgate, "/rlconfig");
  return body.trim().split("\n").sort();
}

async function statistic(name: string): Promise<number | undefined> {
  return (await statistics(headgate)).get(`ratelimit.service.rate_limit.edge.${name}`);
}

const line = (key: string, count: number, isShadow = false): string =>
  `edge.${key}: unit=YEAR requests_per_unit=${count}, ` +
  `shadow_mode: ${isShadow}, quota_mode: ${key === "tokens"}`;

describe("migration day", () => {
  it("begins with the reference's files and environment, and answers as it did", async () => {
    expect(await ask(5, { user: "ann" })).toBe("200 200 200 200 429");
    expect(await ask(2, { user: "bob" })).toBe("200 200");
    expect(await ask(2, { account: "acme" })).toBe("200 200");
    expect(await limitsThere()).toEqual([
      line("account", 5),
      line("client", 1_000),
      line("tokens", 2),
      line("user", 4),
    ]);
    expect(await statistic("user.total_hits")).toBe(7);
    expect(await statistic("user.over_limit")).toBe(1);
  });

  it("is told beforehand what differs, there and in a policy of the same limits", async () => {
    const merge = ["--merge-domain-config", "true"];
    const there = await captureCli(["check", "--ratelimit", config, ...merge]);
    expect(there.code, there.err).toBe(0);
    expect(there.out).toContain("OK: 3 files, 1 domain, 4 rules, 4 limits.");
    expect(there.out).toContain("keep the old way: HEADGATE_ALGORITHM=fixed_window");
    const [old, wanted] = [join(stage.folder, "old.yaml"), join(stage.folder, "new.yaml")];
    await writeFile(old, usersThere);
    await writeFile(wanted, usersHere);
    const { out } = await captureCli(["diff", "-o", "json", old, wanted]);
    expect(JSON.parse(out).changes).toMatchObject([
      { place: "edge", words: expect.stringContaining("costs reported after the response") },
    ]);
  });

  it("plays the token-quota script before a file moves to kind: Policy, and after", async () => {
    expect(await askSettled(4, "before")).toBe("200 200 200 429");
    await move("tokens.yaml", tokensHere);
    expect(await askSettled(1, "before")).toBe("429");
    expect(await askSettled(4, "after")).toBe("200 200 200 429");
    expect(await limitsThere()).toContain(`${line("tokens", 2)}, charge: settle`);
  });

  it("moves a file to kind: Policy, and what was used stays used", async () => {
    await move("users.yaml", usersHere);
    expect(await ask(1, { user: "ann" })).toBe("429");
    expect(await ask(3, { user: "bob" })).toBe("200 200 429");
    expect(await statistic("user.total_hits")).toBe(11);
    expect(await statistic("user.over_limit")).toBe(3);
    expect(await limitsThere()).toContain(line("user", 4));
  });

  it("moves another into the shadow first, where it counts and refuses nobody", async () => {
    await move("accounts.yaml", accountsBeside);
    expect(await ask(5, { account: "acme" })).toBe("200 200 200 200 200");
    expect(await statistic("account.shadow_mode")).toBe(2);
    expect(await limitsThere()).toContain(line("account", 5, true));
  });

  it("then enforces it, by what the shadow has counted", async () => {
    await move("accounts.yaml", accountsHere);
    expect(await ask(1, { account: "acme" })).toBe("429");
    expect(await ask(1, { account: "other" })).toBe("200");
    expect(await limitsThere()).toEqual([
      line("account", 5),
      line("client", 1_000),
      `${line("tokens", 2)}, charge: settle`,
      line("user", 4),
    ]);
    const { code, out } = await captureCli(["check", "--merge-domain-config", config]);
    expect({ code, out }).toEqual({ code: 0, out: "OK: 3 files, 1 domain, 4 rules, 4 limits." });
  });

  it("ends on Headgate's own settings, and no request was lost or counted twice", async () => {
    const text = policyOf(
      "edge",
      ...[`key: user, ${yearly(4)}`, `key: client, ${yearly(1_000)}`, `key: account, ${yearly(5)}`],
      tokens(", charge: settle"),
    );
    const after = await startDropIn(stage, { policy: text, env: redisEnv(redis.port) });
    expect(await after.ask("user=ann")).toBe("OVER: over 0/4");
    expect(await after.ask("account=acme")).toBe("OVER: over 0/5");
    expect(await after.ask("client=steady")).toBe(`OK: ${1_000 - clientCount - 1}/1000`);
    expect(clientCount).toBeGreaterThan(0);
    expect(await headgate.metric("headgate_failed_requests_total")).toBe(0);
    expect(await headgate.metric("headgate_fallback_decisions_total")).toBe(0);
    expect(await headgate.metric("headgate_policy_loads_total", { result: "refused" })).toBe(0);
  });
});
