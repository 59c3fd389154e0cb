import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { credentials } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { TestAuthority } from "../support/certificates.js";
import { debugPage, quickDrain, reported, startDropIn, statistics } from "../support/drop-in.js";
import { freePort } from "../support/free-port.js";
import { HeadgateProcess, type RunningHeadgate } from "../support/headgate-process.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { startTcpStatsd } from "../support/statsd-server.js";
import { TlsFolder } from "../support/tls-folder.js";
import { waitFor } from "../support/wait.js";
import { XdsServer } from "../support/xds-server.js";

/**
 * Each test begins with the id of a row in the documented table of differences, and shows what the
 * row says of the process; drop-in-differences does so for rows about files.
 */
const policy = `domain: edge
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: once, rate_limit: {unit: year, requests_per_unit: 1}}
  - key: tier
    metadata: {plan: {name: gold}}
    rate_limit: {unit: year, requests_per_unit: 10}
  - key: zone
    metadata: {plan: {place: here}}
    rate_limit: {unit: year, requests_per_unit: 10}
  - {key: value, detailed_metric: true, rate_limit: {unit: year, requests_per_unit: 10}}
`;

const question = { descriptors: [["user=a"]] };

const jsonQuestion = {
  domain: "edge",
  descriptors: [{ entries: [{ key: "user", value: "a" }] }],
};

const stage = useStage("test");

async function readiness(headgate: RunningHeadgate): Promise<string> {
  const { status, body } = await headgate.get("/readyz");
  return `${status} ${JSON.parse(body).status}`;
}

describe("differences around Redis", () => {
  it("new-counters: keys of its own; what another service left is nothing", async () => {
    const redis = await startRedis(stage);
    const control = redis.client();
    const left = `edge_user_a_${Math.floor(Date.now() / 1_000)}`;
    await control.set(left, "10");
    const { ask } = await startDropIn(stage, { policy, env: redisEnv(redis.port) });
    expect(await ask("user=a")).toBe("OK: 9/10");
    const others = (await control.keys("*")).filter((key) => !key.startsWith("headgate:"));
    expect(others).toEqual([left]);
  });

  it("store-budget: an answer although Redis does not give one", async () => {
    const redis = await startRedis(stage);
    const env = { ...redisEnv(redis.port), HEADGATE_STORE_BUDGET_MS: "10" };
    const { headgate, client } = await startDropIn(stage, { policy, env });
    redis.pause();
    const answer = await client.ask(question);
    redis.resume();
    expect(reported(answer)).toBe("OK: 9/10");
    expect(answer.elapsedMs).toBeLessThan(redisTimeoutMs / 10);
    expect(await headgate.metric("headgate_fallback_decisions_total")).toBe(1);
  });

  it("start-without-redis: it starts, answers, and is well by itself when Redis is", async () => {
    const redis = await startRedis(stage);
    await redis.kill();
    const { headgate, ask } = await startDropIn(stage, { policy, env: redisEnv(redis.port) });
    expect(await ask("user=a")).toBe("OK: 9/10");
    expect(await readiness(headgate)).toBe("200 degraded");
    await redis.restart();
    await waitFor("it is well", async () => (await readiness(headgate)) === "200 ready");
    // What was used locally is not taken along: its first hit is Redis's first.
    await waitFor("Redis decides", async () => (await ask("user=a")) === "OK: 9/10");
  });

  it("health: a replica whose Redis is away is healthy, and says degraded", async () => {
    const redis = await startRedis(stage);
    const env = { ...redisEnv(redis.port), REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: "true" };
    const { headgate } = await startDropIn(stage, { policy, env });
    expect(await readiness(headgate)).toBe("200 ready");
    await redis.kill();
    await waitFor("it says so", async () => (await readiness(headgate)) === "200 degraded");
    expect((await headgate.get("/healthcheck")).status).toBe(200);
  });

  it("error-codes: each failure by its name, and a line that says what to do", async () => {
    const redis = await startRedis(stage);
    const env = { ...redisEnv(redis.port), HEADGATE_ON_STORE_FAILURE: "error" };
    const { headgate, ask, askAll } = await startDropIn(stage, { policy, env });
    expect(await askAll({ descriptors: [] })).toBe("INVALID_ARGUMENT");
    expect((await headgate.postJson({ ...jsonQuestion, domain: "" })).status).toBe(400);
    await redis.client().config("SET", "maxmemory", "1");
    expect(await ask("user=a")).toBe("UNAVAILABLE");
    const answer = await headgate.postJson(jsonQuestion);
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([503, "STORE_OUT_OF_MEMORY"]);
    const labels = { error: "STORE_OUT_OF_MEMORY" };
    expect(await headgate.metric("headgate_failed_requests_total", labels)).toBe(2);
    // Once it happens again and again, Redis is left alone.
    await waitFor("the log says what to do", async () => {
      await ask("user=a");
      return headgate.output.includes("Give Redis more memory");
    });
  });

  it("refusal-memory: a raised limit lets in at once who was over", async () => {
    const { headgate, ask } = await startDropIn(stage, { policy });
    await ask("once=a");
    for (let count = 0; count < 3; count += 1) expect(await ask("once=a")).toBe("OVER: over 0/1");
    expect(await headgate.metric("headgate_over_limit_cache_denials_total")).toBeGreaterThan(0);
    const raised = policy.replace("requests_per_unit: 1}", "requests_per_unit: 5}");
    await writeFile(headgate.policyPath, raised);
    await waitFor("it is active", async () => {
      return (await headgate.metric("headgate_policy_loads_total", { result: "loaded" })) === 2;
    });
    expect(await ask("once=a")).toBe("OK: 3/5");
  });

  it("memcached: refused at the start, with what to use instead", async () => {
    const { code, output } = await HostedHeadgate.startFailure(stage, {
      policy,
      env: { BACKEND_TYPE: "memcache" },
    });
    expect([code, output]).toEqual([2, expect.stringContaining("BACKEND_TYPE=redis")]);
  });
});

/** What REDIS_TIMEOUT is where nobody sets it. */
const redisTimeoutMs = 10_000;

describe("differences in answers and statistics", () => {
  it("merged-metadata: what one response merges changes no other", async () => {
    const env = { RESPONSE_DYNAMIC_METADATA: "true" };
    const { client } = await startDropIn(stage, { policy, env });
    const metadataOf = async (...entries: readonly string[]): Promise<unknown> => {
      const answer = await client.ask({ descriptors: entries.map((entry) => [entry]) });
      return answer.kind === "decided" && answer.response.dynamicMetadata?.["metadata"];
    };
    expect(await metadataOf("tier=a", "zone=a")).toEqual({ plan: { name: "gold", place: "here" } });
    expect(await metadataOf("tier=a")).toEqual({ plan: { name: "gold" } });
  });

  it("debug-port: only this machine reaches it, unless DEBUG_HOST says otherwise", async () => {
    const [usual, open] = await Promise.all([
      startDropIn(stage, { policy }),
      startDropIn(stage, { policy, env: { DEBUG_HOST: "0.0.0.0" } }),
    ]);
    expect(eventsOf(usual.headgate)).toContainEqual(
      expect.objectContaining({
        event: "debugListening",
        address: expect.objectContaining({ host: "127.0.0.1" }),
      }),
    );
    expect(eventsOf(open.headgate).map(({ event }) => event)).toContain("debugExposed");
    expect((await debugPage(open.headgate, "/debug/pprof/")).body).toContain("CPU profile");
  });

  it("statsd-default: statistics go out where STATSD_HOST or USE_STATSD is set", async () => {
    const [silent, receiving] = [await startTcpStatsd(stage), await startTcpStatsd(stage)];
    const flush = { STATS_FLUSH_INTERVAL: "100ms" };
    const usual = await startDropIn(stage, {
      policy,
      env: { ...flush, STATSD_PORT: String(silent.port) },
    });
    await usual.ask("user=a");
    const sending = await startDropIn(stage, {
      policy,
      env: { ...flush, USE_STATSD: "true", STATSD_PORT: String(receiving.port) },
    });
    await sending.ask("user=a");
    await waitFor("it is told", () => receiving.lines().length > 0);
    expect(silent.lines()).toEqual([]);
  });

  it("missing-statistics: of this process by Prometheus, and none of Go's", async () => {
    const { headgate, ask } = await startDropIn(stage, { policy });
    await ask("user=a");
    const names = [...(await statistics(headgate)).keys()];
    const foreign = /^(ratelimit\.(go|localcache|memcache)|runtime)\./;
    expect(names.filter((name) => foreign.test(name))).toEqual([]);
    expect((await headgate.get("/metrics")).body).toContain("process_resident_memory_bytes");
  });

  it("bounded-statistics: made-up domains and values make no more than so many", async () => {
    const { headgate, client } = await startDropIn(stage, { policy });
    for (const domain of ["a", "b", "c"]) await client.ask({ ...question, domain });
    const values = Array.from({ length: 1_010 }, (_, i) => [`value=v${i}`]);
    for (let i = 0; i < values.length; i += 10) {
      await client.ask({ descriptors: values.slice(i, i + 10) });
    }
    const all = await statistics(headgate);
    expect(all.get("ratelimit.service.rate_limit.unknown.domain_not_found")).toBe(3);
    const prefix = "ratelimit.service.rate_limit.edge.value";
    const names = [...all.keys()].filter((name) => {
      return name.startsWith(`${prefix}_v`) && name.endsWith(".total_hits");
    });
    expect(names).toHaveLength(1_000);
    expect(all.get(`${prefix}.total_hits`)).toBe(10);
  });
});

interface Event {
  readonly event: string;
  readonly [fact: string]: unknown;
}

/** The log's lines. */
function eventsOf({ output }: RunningHeadgate): readonly Event[] {
  const lines = output.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line));
}

describe("differences to a control plane", () => {
  it("first-policy: ports are open before there is one, and calls fail until then", async () => {
    const headgate = await HostedHeadgate.open(stage, {
      env: {
        ...quickDrain,
        CONFIG_TYPE: "GRPC_XDS_SOTW",
        CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${await freePort()}`,
      },
    });
    const answer = await headgate.postJson(jsonQuestion);
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([503, "POLICY_MISSING"]);
    const client = new RlsClient(headgate.grpcPort);
    stage.atEnd(() => client.close());
    expect(reported(await client.ask(question))).toBe("UNAVAILABLE");
    expect((await headgate.get("/healthcheck")).status).toBe(500);
  });

  it("control-plane-trust: who only has public authorities is a stranger", async () => {
    const [publicOne, named] = [new TestAuthority("Public"), new TestAuthority("Named")];
    const folder = new TlsFolder(join(stage.folder, "plane"));
    const server = publicOne.issue({ names: ["localhost"] });
    await folder.write({ server, clientAuthority: publicOne.certificate });
    const namedPath = join(stage.folder, "named.crt");
    await writeFile(namedPath, named.certificate);
    const plane = await XdsServer.start(stage, {
      tls: {
        certificateFile: folder.certificatePath,
        keyFile: folder.keyPath,
        authorityFile: folder.authorityPath,
      },
    });
    const headgate = await HeadgateProcess.prepare(stage, {
      env: {
        ...quickDrain,
        // What Node trusts besides, as if it were a public authority.
        NODE_EXTRA_CA_CERTS: folder.authorityPath,
        CONFIG_TYPE: "GRPC_XDS_SOTW",
        CONFIG_GRPC_XDS_SERVER_URL: `localhost:${plane.port}`,
        CONFIG_GRPC_XDS_SERVER_USE_TLS: "true",
        CONFIG_GRPC_XDS_SERVER_TLS_CACERT: namedPath,
        CONFIG_GRPC_XDS_CLIENT_TLS_CERT: folder.certificatePath,
        CONFIG_GRPC_XDS_CLIENT_TLS_KEY: folder.keyPath,
      },
    });
    headgate.spawn();
    await waitFor("it is refused", async () => {
      const { policy: source } = JSON.parse((await headgate.get("/readyz")).body);
      return source.controlPlane?.lastFailure !== undefined;
    });
    expect(await plane.requests()).toEqual([]);
  });

  it("growing-waits: each wait is longer than the last, also with a factor of 0.5", async () => {
    const headgate = await HostedHeadgate.open(stage, {
      env: {
        ...quickDrain,
        LOG_LEVEL: "debug",
        CONFIG_TYPE: "GRPC_XDS_SOTW",
        CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${await freePort()}`,
        CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: "100ms",
        XDS_CLIENT_BACKOFF_RANDOM_FACTOR: "0.5",
        XDS_CLIENT_BACKOFF_JITTER: "false",
      },
    });
    const waits = (): readonly number[] => {
      const retries = eventsOf(headgate).filter(({ event }) => event === "xdsRetry");
      return retries.map(({ waitMs }) => Number(waitMs));
    };
    await waitFor("it tried three times", () => waits().length >= 3);
    expect(waits().slice(0, 3)).toEqual([200, 400, 800]);
  });
});

describe("differences of TLS on the gRPC port", () => {
  it("client-trust: clients of named authorities only; names may be URIs", async () => {
    const [publicOne, named] = [new TestAuthority("Public"), new TestAuthority("Named")];
    const files = new TlsFolder(join(stage.folder, "tls"));
    const server = named.issue({ names: ["headgate"] });
    await files.write({ server, clientAuthority: named.certificate });
    const publicPath = join(stage.folder, "public.crt");
    await writeFile(publicPath, publicOne.certificate);
    const uri = "spiffe://shop/edge";
    const env = {
      ...quickDrain,
      ...files.mutualEnv,
      GRPC_CLIENT_TLS_SAN: uri,
      NODE_EXTRA_CA_CERTS: publicPath,
    };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    const outcomeFrom = async (authority: TestAuthority): Promise<string> => {
      const own = authority.issue({ uris: [uri] });
      const parts = [named.certificate, own.key, own.certificate] as const;
      const [root, key, certificate] = parts.map((text) => Buffer.from(text));
      const client = new RlsClient({
        target: `127.0.0.1:${headgate.grpcPort}`,
        serverName: "headgate",
        credentials: credentials.createSsl(root, key, certificate),
      });
      stage.atEnd(() => client.close());
      return reported(await client.ask(question));
    };
    expect(await outcomeFrom(named)).toBe("OK: 9/10");
    expect(await outcomeFrom(publicOne)).toBe("UNAVAILABLE");
  });

  it("cipher-suites: those of TLS 1.2 that HTTP/2 forbids are refused", async () => {
    const authority = new TestAuthority();
    const files = new TlsFolder(join(stage.folder, "tls"));
    await files.write({ server: authority.issue({ names: ["headgate"] }) });
    const env = { ...quickDrain, ...files.env };
    const headgate = await HostedHeadgate.start(stage, { policy, env });
    const handshake = (ciphers: string): Promise<string> =>
      new Promise((resolve) => {
        const socket: TLSSocket = connect(
          {
            host: "127.0.0.1",
            port: headgate.grpcPort,
            servername: "headgate",
            ca: authority.certificate,
            maxVersion: "TLSv1.2",
            ALPNProtocols: ["h2"],
            ciphers,
          },
          () => {
            resolve(socket.getCipher().name);
            socket.destroy();
          },
        );
        socket.once("error", () => resolve("refused"));
      });
    expect(await handshake("ECDHE-ECDSA-AES128-GCM-SHA256")).toBe("ECDHE-ECDSA-AES128-GCM-SHA256");
    expect(await handshake("ECDHE-ECDSA-AES128-SHA")).toBe("refused");
  });
});
