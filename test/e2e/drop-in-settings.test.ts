import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { RateLimitUnit } from "../../src/gen/api/ratelimit/config/ratelimit/v3/rls_conf_pb.js";
import { TestAuthority } from "../support/certificates.js";
import {
  debugPage,
  ignoredNames,
  quickDrain,
  reported,
  settingNames,
  startDropIn,
} from "../support/drop-in.js";
import type { RunningHeadgate } from "../support/headgate-process.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { startRedis } from "../support/redis.js";
import { RedisCluster } from "../support/redis-cluster.js";
import { RedisSentinels } from "../support/redis-sentinels.js";
import { startTlsRedis, writeCertificateFiles } from "../support/redis-tls.js";
import { RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { TlsFolder } from "../support/tls-folder.js";
import { waitFor } from "../support/wait.js";
import { XdsServer } from "../support/xds-server.js";

const policy = `domain: edge
descriptors:
  - {key: user, metadata: {team: edge}, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: burst, rate_limit: {unit: second, requests_per_unit: 1000}}
`;

const question = { descriptors: [["user=a"]] };

const stage = useStage("test");

/** Every name is a documented row: an option, or one that changes nothing. */
async function expectRows(names: readonly string[], kind: "option" | "ignored"): Promise<void> {
  const known = kind === "option" ? settingNames() : ignoredNames();
  expect(names.filter((name) => !known.includes(name))).toEqual([]);
}

/** Every name that is set is told once at the start, without its value. */
function expectNotices({ output }: RunningHeadgate, names: readonly string[]): void {
  const notices = output.split("\n").filter((line) => line.includes("without effect"));
  for (const name of names) {
    const word = new RegExp(`\\b${name}\\b`);
    expect([name, notices.filter((line) => word.test(line)).length]).toEqual([name, 1]);
  }
  expect(output).not.toContain(unusedValue);
}

const unusedValue = "value-73";

function unused(names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, unusedValue]));
}

describe("environment names of envoyproxy/ratelimit", () => {
  it("say where HTTP, gRPC and the debug port listen, and how old connections get", async () => {
    await expectRows(["HOST", "PORT", "GRPC_HOST", "GRPC_PORT", "GRPC_UDS"], "option");
    await expectRows(["DEBUG_HOST", "DEBUG_PORT"], "option");
    await expectRows(["GRPC_MAX_CONNECTION_AGE", "GRPC_MAX_CONNECTION_AGE_GRACE"], "option");
    const socket = join(stage.folder, "grpc.sock");
    const ages = { GRPC_MAX_CONNECTION_AGE: "200ms", GRPC_MAX_CONNECTION_AGE_GRACE: "5s" };
    const [onPort, onSocket] = await Promise.all([
      startDropIn(stage, { policy, env: ages }),
      startDropIn(stage, { policy, env: { GRPC_UDS: socket } }),
    ]);
    // Callers move to a new connection when theirs is old, and none of their calls fails.
    const endMs = performance.now() + 1_000;
    while (performance.now() < endMs) expect(await onPort.ask("nobody=a")).toBe("OK: -");
    expect(await onPort.ask("user=a")).toBe("OK: 9/10");
    expect((await debugPage(onPort.headgate, "/")).status).toBe(200);

    const client = new RlsClient({ target: `unix:${socket}` });
    stage.atEnd(() => client.close());
    expect(reported(await client.ask(question))).toBe("OK: 9/10");
    expect(await onSocket.ask("user=a")).toBe("UNAVAILABLE");
  });

  it("serve gRPC over TLS to clients with the right certificate", async () => {
    await expectRows(["GRPC_SERVER_USE_TLS", "GRPC_SERVER_TLS_CERT"], "option");
    await expectRows(["GRPC_SERVER_TLS_KEY", "GRPC_CLIENT_TLS_CACERT"], "option");
    await expectRows(["GRPC_CLIENT_TLS_SAN"], "option");
    const authority = new TestAuthority();
    const files = new TlsFolder(join(stage.folder, "tls"));
    const server = authority.issue({ names: ["headgate"] });
    await files.write({ server, clientAuthority: authority.certificate });
    const env = { ...quickDrain, ...files.mutualEnv, GRPC_CLIENT_TLS_SAN: "edge" };
    const headgate = await HostedHeadgate.start(stage, { policy, env });
    const outcomeFor = async (name: string): Promise<string> => {
      const own = authority.issue({ names: [name] });
      const [root, key, certificate] = [authority.certificate, own.key, own.certificate];
      const client = new RlsClient({
        target: `127.0.0.1:${headgate.grpcPort}`,
        serverName: "headgate",
        credentials: credentials.createSsl(
          Buffer.from(root),
          Buffer.from(key),
          Buffer.from(certificate),
        ),
      });
      stage.atEnd(() => client.close());
      return reported(await client.ask(question));
    };
    expect(await outcomeFor("edge")).toBe("OK: 9/10");
    expect(await outcomeFor("other")).toBe("UNAVAILABLE");
  });

  it("choose the log's level and format", async () => {
    await expectRows(["LOG_LEVEL", "LOG_FORMAT"], "option");
    const json = await startDropIn(stage, { policy, env: { LOG_LEVEL: "DEBUG" } });
    const [line = ""] = json.headgate.output.split("\n");
    expect(JSON.parse(line)).toMatchObject({
      "@timestamp": expect.stringMatching(/^\d{4}-/),
      "@message": expect.any(String),
      level: expect.any(String),
    });
    const env = { LOG_LEVEL: "warning", LOG_FORMAT: "text", REDIS_POOL_SIZE: "10" };
    const { headgate } = await startDropIn(stage, { policy, env });
    const lines = headgate.output.trim().split("\n");
    expect(lines.filter((one) => !/^\[.*\] WARN: /.test(one))).toEqual([]);
    expect(lines.length).toBeGreaterThan(0);
  });

  it("name the policy's files, and what holds while there are none", async () => {
    await expectRows(["CONFIG_TYPE", "FORCE_START_WITHOUT_INITIAL_CONFIG"], "option");
    await expectRows(["RUNTIME_ROOT", "RUNTIME_SUBDIRECTORY"], "option");
    await expectRows(["RUNTIME_APPDIRECTORY", "RUNTIME_IGNOREDOTFILES"], "option");
    await expectRows(["RUNTIME_WATCH_ROOT", "MERGE_DOMAIN_CONFIG"], "option");
    await expectRows(["HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED"], "option");
    const folder = join(stage.folder, "sub", "limits");
    const runtime = {
      CONFIG_TYPE: "FILE",
      RUNTIME_ROOT: stage.folder,
      RUNTIME_SUBDIRECTORY: "sub",
      RUNTIME_APPDIRECTORY: "limits",
      RUNTIME_IGNOREDOTFILES: "true",
      RUNTIME_WATCH_ROOT: "false",
      MERGE_DOMAIN_CONFIG: "true",
    };
    const waiting = {
      FORCE_START_WITHOUT_INITIAL_CONFIG: "true",
      HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: "true",
    };
    expect(await HostedHeadgate.startFailure(stage, { env: runtime })).toMatchObject({ code: 1 });
    await mkdir(folder, { recursive: true });
    const early = await HostedHeadgate.open(stage, {
      env: { ...quickDrain, ...runtime, ...waiting },
    });
    expect((await early.get("/healthcheck")).status).toBe(500);

    await writeFile(join(folder, "users.yaml"), policy);
    await writeFile(
      join(folder, "more"),
      "domain: edge\ndescriptors: [{key: more, rate_limit: {unlimited: true}}]\n",
    );
    await writeFile(join(folder, ".draft.yaml"), "no policy: [");
    await waitFor("it is well", async () => (await early.get("/healthcheck")).status === 200, {
      withinMs: 20_000,
    });
    expect(JSON.parse((await early.get("/readyz")).body).policy).toMatchObject({ rules: 3 });
    const apart = { ...runtime, MERGE_DOMAIN_CONFIG: "false" };
    const refused = await HostedHeadgate.startFailure(stage, { env: apart });
    expect(refused).toMatchObject({ code: 3, output: expect.stringContaining("HG150") });
  });

  it("name the control plane, who we are to it, and how long to wait for it", async () => {
    await expectRows(xdsNames, "option");
    const authority = new TestAuthority();
    const files = await writeCertificateFiles(
      stage,
      authority.issue({ names: ["plane", "localhost"] }),
      authority,
    );
    const plane = await XdsServer.start(stage, {
      tls: {
        certificateFile: files.certificate,
        keyFile: files.key,
        authorityFile: files.authority,
      },
    });
    const limit = { unit: RateLimitUnit.YEAR, requestsPerUnit: 10 };
    const descriptors = [{ key: "user", rateLimit: limit }];
    await plane.hold("1", [{ name: "edge", domain: "edge", descriptors }]);
    const service = await startDropIn(stage, {
      env: {
        CONFIG_TYPE: "GRPC_XDS_SOTW",
        CONFIG_GRPC_XDS_SERVER_URL: plane.address,
        CONFIG_GRPC_XDS_NODE_ID: "gate-1",
        CONFIG_GRPC_XDS_NODE_METADATA: "zone=a,fleet=edge",
        CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: "x-team:edge,x-token:t73",
        CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: "100ms",
        CONFIG_GRPC_XDS_SERVER_USE_TLS: "true",
        CONFIG_GRPC_XDS_CLIENT_TLS_CERT: files.certificate,
        CONFIG_GRPC_XDS_CLIENT_TLS_KEY: files.key,
        CONFIG_GRPC_XDS_SERVER_TLS_CACERT: files.authority,
        CONFIG_GRPC_XDS_SERVER_TLS_SAN: "plane",
        XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: "100ms",
        XDS_CLIENT_BACKOFF_MAX_INTERVAL: "200ms",
        XDS_CLIENT_BACKOFF_RANDOM_FACTOR: "0.5",
        XDS_CLIENT_BACKOFF_JITTER: "false",
        XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: "1048576",
      },
    });
    expect(await service.ask("user=a")).toBe("OK: 9/10");
    const [hello] = await plane.requests();
    expect(hello).toMatchObject({
      nodeId: "gate-1",
      nodeMetadata: { zone: "a", fleet: "edge" },
      headers: { "x-team": "edge", "x-token": "t73" },
    });
    // After a loss it is there again within the waits that were set, not within the usual ten.
    await plane.restart();
    await plane.requestWith("it is back", ({ nodeId }) => nodeId === "gate-1");
    expect(service.headgate.output).not.toContain("t73");
  });

  it("say how limits are counted, or are told to change nothing, with the reason", async () => {
    await expectRows(["NEAR_LIMIT_RATIO", "CACHE_KEY_PREFIX", "BACKEND_TYPE"], "option");
    await expectRows(["SHADOW_MODE", "QUOTA_MODE", "RESPONSE_DYNAMIC_METADATA"], "option");
    const without = [
      "LOCAL_CACHE_SIZE_IN_BYTES",
      "EXPIRATION_JITTER_MAX_SECONDS",
      "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
    ];
    await expectRows(without, "ignored");
    const redis = await startRedis(stage);
    const { headgate, client } = await startDropIn(stage, {
      policy,
      env: {
        ...unused(without),
        BACKEND_TYPE: "redis",
        REDIS_URL: `127.0.0.1:${redis.port}`,
        CACHE_KEY_PREFIX: "mine:",
        NEAR_LIMIT_RATIO: "0.5",
        SHADOW_MODE: "true",
        QUOTA_MODE: "true",
        RESPONSE_DYNAMIC_METADATA: "true",
      },
    });
    expectNotices(headgate, without);
    const answers = [];
    for (let count = 0; count < 11; count += 1) answers.push(await client.ask(question));
    // Half of ten is near; the eleventh is over, and passes for SHADOW_MODE.
    expect(reported(answers[10] ?? never)).toBe("OK: over 0/10");
    expect(answers[0]).toMatchObject({ response: { dynamicMetadata: { domain: "edge" } } });
    expect((await redis.client().keys("*")).every((key) => key.startsWith("mine:"))).toBe(true);
    expect(await headgate.metric("headgate_near_limit_hits_total")).toBe(5);
  });

  it("switch response headers on, and name them", async () => {
    const names = ["LIMIT_LIMIT_HEADER", "LIMIT_REMAINING_HEADER", "LIMIT_RESET_HEADER"];
    await expectRows([...names, "LIMIT_RESPONSE_HEADERS_ENABLED"], "option");
    const headersWith = async (env: Readonly<Record<string, string>>) => {
      const on = { LIMIT_RESPONSE_HEADERS_ENABLED: "true", ...env };
      const { client } = await startDropIn(stage, { policy, env: on });
      const answer = await client.ask(question);
      if (answer.kind === "failed") throw new Error(answer.details);
      return answer.response.responseHeadersToAdd.map(({ key, value }) => [key, value]);
    };
    const tenthSeconds = String(Math.ceil((365 * 86_400) / 10));
    expect(await headersWith({})).toEqual([
      ["RateLimit-Limit", "10"],
      ["RateLimit-Remaining", "9"],
      ["RateLimit-Reset", tenthSeconds],
    ]);
    const renamed = await headersWith({
      LIMIT_LIMIT_HEADER: "X-L",
      LIMIT_REMAINING_HEADER: "X-R",
      LIMIT_RESET_HEADER: "X-T",
    });
    expect(renamed.map(([key]) => key)).toEqual(["X-L", "X-R", "X-T"]);
  });
});

describe("REDIS_ names of envoyproxy/ratelimit", () => {
  it("are all taken: a type, a place, a user, TLS; and a second Redis of its own", async () => {
    await expectRows(redisNames.flatMap(bothSides), "option");
    await expectRows(redisTlsNames, "option");
    await expectRows(unusedRedisNames, "ignored");
    const authority = new TestAuthority();
    const { server, tlsPort } = await startTlsRedis(stage, { authority, knowsClients: true });
    const own = await writeCertificateFiles(stage, authority.issue(), authority);
    const second = await startRedis(stage);
    await second.client().call("acl", "setuser", "gate", "on", ">pw-73", "~headgate:*", "+@all");
    const { headgate, ask } = await startDropIn(stage, {
      policy,
      env: {
        ...unused(unusedRedisNames),
        REDIS_SOCKET_TYPE: "tcp",
        REDIS_TYPE: "SINGLE",
        REDIS_URL: `127.0.0.1:${tlsPort}`,
        REDIS_TIMEOUT: "5s",
        REDIS_TLS: "true",
        REDIS_TLS_CACERT: own.authority,
        REDIS_TLS_CLIENT_CERT: own.certificate,
        REDIS_TLS_CLIENT_KEY: own.key,
        REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: "true",
        REDIS_PERSECOND: "true",
        REDIS_PERSECOND_SOCKET_TYPE: "unix",
        REDIS_PERSECOND_URL: second.socketPath,
        REDIS_PERSECOND_AUTH: "gate:pw-73",
      },
    });
    expectNotices(headgate, unusedRedisNames);
    expect([await ask("user=a"), await ask("burst=a")]).toEqual(["OK: 9/10", "OK: 999/1000"]);
    expect(await headgate.metric("headgate_fallback_decisions_total")).toBe(0);
    const keys = await server.client().keys("headgate:*");
    expect(keys.filter((key) => !fleetKey.test(key))).toHaveLength(1);
    expect(keys).toContain("headgate:fleet:replicas");
    expect(headgate.output).not.toContain("pw-73");
  });

  it("reach a cluster, of which some nodes are named", async () => {
    const cluster = await RedisCluster.start("redis");
    stage.atEnd(() => cluster.stop());
    const url = cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join();
    const env = { REDIS_TYPE: "CLUSTER", REDIS_URL: url };
    const { headgate, askAll } = await startDropIn(stage, { policy, env });
    const descriptors = ["a", "b", "c", "d", "e", "f"].map((user) => [`user=${user}`]);
    expect(await askAll({ descriptors })).toBe(`OK: ${descriptors.map(() => "9/10").join(", ")}`);
    expect(await headgate.metric("headgate_fallback_decisions_total")).toBe(0);
  });

  it("reach what sentinels call the primary", async () => {
    const group = await RedisSentinels.start({ password: "pw-73", sentinelPassword: "pw-74" });
    stage.atEnd(() => group.stop());
    const { headgate, ask } = await startDropIn(stage, {
      policy,
      env: {
        REDIS_TYPE: "SENTINEL",
        REDIS_URL: group.url,
        REDIS_AUTH: "pw-73",
        REDIS_SENTINEL_AUTH: "pw-74",
      },
    });
    expect(await ask("user=a")).toBe("OK: 9/10");
    expect(await headgate.metric("headgate_fallback_decisions_total")).toBe(0);
    expect(headgate.output).not.toMatch(/pw-7/);
  });
});

describe("MEMCACHE_ names of envoyproxy/ratelimit", () => {
  it("change nothing; BACKEND_TYPE=memcache says what to use instead", async () => {
    await expectRows(memcacheNames, "ignored");
    const { headgate, ask } = await startDropIn(stage, { policy, env: unused(memcacheNames) });
    expectNotices(headgate, memcacheNames);
    expect(await ask("user=a")).toBe("OK: 9/10");

    const env = { BACKEND_TYPE: "memcache", MEMCACHE_HOST_PORT: "localhost:11211" };
    const refused = await HostedHeadgate.startFailure(stage, { policy, env });
    expect(refused.code).toBe(2);
    expect(refused.output).toMatch(/BACKEND_TYPE .*memcache.*BACKEND_TYPE=redis.*REDIS_URL/);
  });
});

/** What a test without an answer was told. */
const never = { kind: "failed", statusName: "no answer", details: "", elapsedMs: 0 } as const;

/** What replicas share beside buckets, which they write when they have the time. */
const fleetKey = /^headgate:(fleet|\{fleet\}):/;

const redisNames = ["SOCKET_TYPE", "TYPE", "URL", "AUTH", "TLS", "SENTINEL_AUTH", "TIMEOUT"];

function bothSides(name: string): readonly string[] {
  return [`REDIS_${name}`, `REDIS_PERSECOND_${name}`];
}

const redisTlsNames = [
  "REDIS_PERSECOND",
  "REDIS_TLS_CLIENT_CERT",
  "REDIS_TLS_CLIENT_KEY",
  "REDIS_TLS_CACERT",
  "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION",
];

const unusedRedisNames = [
  ...bothSides("POOL_SIZE"),
  ...bothSides("PIPELINE_WINDOW"),
  ...bothSides("PIPELINE_LIMIT"),
  ...bothSides("CLUSTER_PIPELINE_PARALLELISM"),
  ...bothSides("POOL_ON_EMPTY_BEHAVIOR"),
  "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION",
  "REDIS_STARTUP_INITIAL_INTERVAL",
  "REDIS_STARTUP_MAX_INTERVAL",
  "REDIS_STARTUP_MAX_ELAPSED_TIME",
  "REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR",
];

const memcacheNames = [
  "MEMCACHE_HOST_PORT",
  "MEMCACHE_SRV",
  "MEMCACHE_SRV_REFRESH",
  "MEMCACHE_MAX_IDLE_CONNS",
  "MEMCACHE_TLS",
  "MEMCACHE_TLS_CLIENT_CERT",
  "MEMCACHE_TLS_CLIENT_KEY",
  "MEMCACHE_TLS_CACERT",
  "MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION",
];

const xdsNames = [
  "CONFIG_GRPC_XDS_NODE_ID",
  "CONFIG_GRPC_XDS_NODE_METADATA",
  "CONFIG_GRPC_XDS_SERVER_URL",
  "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL",
  "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
  "CONFIG_GRPC_XDS_SERVER_USE_TLS",
  "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
  "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
  "CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
  "CONFIG_GRPC_XDS_SERVER_TLS_SAN",
  "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL",
  "XDS_CLIENT_BACKOFF_MAX_INTERVAL",
  "XDS_CLIENT_BACKOFF_RANDOM_FACTOR",
  "XDS_CLIENT_BACKOFF_JITTER",
  "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES",
];
