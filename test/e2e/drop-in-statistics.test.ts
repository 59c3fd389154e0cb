import { describe, expect, it } from "vitest";
import {
  ignoredNames,
  settingNames,
  startDropIn,
  startDropInProcess,
  statistics,
} from "../support/drop-in.js";
import { freePort } from "../support/free-port.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { startOtlpServer } from "../support/otlp-server.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { startTcpStatsd, startUdpStatsd } from "../support/statsd-server.js";
import { waitFor } from "../support/wait.js";

const policy = `domain: edge
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: shadowed, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
  - key: plan
    value: free
    descriptors:
      - {key: address, detailed_metric: true, rate_limit: {unit: year, requests_per_unit: 10}}
  - key: route
    value_to_metric: true
    descriptors:
      - {key: caller, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: burst, rate_limit: {unit: second, requests_per_unit: 1000}}
`;

const hits = "ratelimit.service.rate_limit.edge";

const stage = useStage("test");

async function expectOptions(names: readonly string[]): Promise<void> {
  const known = settingNames();
  expect(names.filter((name) => !known.includes(name))).toEqual([]);
}

describe("statistics by envoyproxy/ratelimit's settings", () => {
  it("go to StatsD, DogStatsD with tags, or Prometheus; to one of them at most", async () => {
    await expectOptions(statsNames);
    expect(ignoredNames()).toContain("PROMETHEUS_MAPPER_YAML");
    const [statsd, silent] = [await startTcpStatsd(stage), await startTcpStatsd(stage)];
    const dog = await startUdpStatsd(stage);
    const common = {
      STATS_FLUSH_INTERVAL: "100ms",
      EXTRA_TAGS: "zone:a",
      STATSD_HOST: "127.0.0.1",
    };
    const prometheusPort = await freePort();
    const services = await Promise.all(
      [
        { ...common, DISABLE_STATS: "true", STATSD_PORT: String(silent.port) },
        { ...common, ...mogrified, STATSD_PORT: String(dog.port) },
        { ...common, ...prometheusOn, PROMETHEUS_ADDR: `127.0.0.1:${prometheusPort}` },
        { ...common, USE_STATSD: "true", STATSD_PORT: String(statsd.port) },
      ].map((env) => startDropIn(stage, { policy, env })),
    );
    // The one with DISABLE_STATS is asked first, so it would be the first to tell.
    for (const { ask } of services) expect(await ask("user=a")).toBe("OK: 9/10");
    const isTotal = (line: string): boolean => line.startsWith(`${hits}.user.total_hits`);
    await waitFor("StatsD is told", () => statsd.lines().some(isTotal));
    await services[3]?.ask("user=a");
    await waitFor("StatsD is told again", () => statsd.lines().filter(isTotal).length === 2);
    expect(silent.lines()).toEqual([]);
    const isTime = (line: string): boolean => line.includes("ShouldRateLimit.response_time");
    expect(statsd.lines().some(isTime)).toBe(true);
    await waitFor("DogStatsD is told", () =>
      dog.lines().some((line) => /^gate\.total_hits:1\|c\|#/.test(line)),
    );
    const tagged = dog.lines().find((line) => line.startsWith("gate.total_hits")) ?? "";
    expect(tagged.split("#")[1]?.split(",").sort()).toEqual(["domain:edge", "rule:user", "zone:a"]);
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const { body } = await http.send({ port: prometheusPort, path: "/stats/prometheus" });
    expect(body).toMatch(
      /^ratelimit_service_rate_limit_total_hits\{.*domain="edge".*key1="user".*\} 1$/m,
    );
    expect(body).toContain("ratelimit_service_response_time_seconds_bucket");
    expect(body).toContain('zone="a"');
    const two = await HostedHeadgate.startFailure(stage, {
      policy,
      env: { USE_STATSD: "true", USE_PROMETHEUS: "true" },
    });
    expect(two).toMatchObject({ code: 2, output: expect.stringContaining("only one of them") });
  });

  it("are beside traces by OpenTelemetry, which carry on those of callers", async () => {
    await expectOptions(tracingNames);
    const collector = await startOtlpServer(stage);
    // The libraries of OpenTelemetry look at the environment of their process themselves.
    const { client } = await startDropInProcess(stage, {
      policy,
      env: {
        TRACING_ENABLED: "true",
        TRACING_EXPORTER_PROTOCOL: "http",
        TRACING_SERVICE_NAME: "gate",
        TRACING_SERVICE_NAMESPACE: "edge",
        TRACING_SERVICE_INSTANCE_ID: "gate-1",
        TRACING_SAMPLING_RATE: "1",
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
        OTEL_BSP_SCHEDULE_DELAY: "100",
      },
    });
    const question = { descriptors: [["user=a"]] };
    const [w3c, b3] = ["1".repeat(32), "2".repeat(32)];
    const parent = "3".repeat(16);
    await client.ask({ ...question, headers: { traceparent: `00-${w3c}-${parent}-01` } });
    await client.ask({ ...question, headers: { b3: `${b3}-${parent}-1` } });
    await client.ask({
      ...question,
      headers: { traceparent: `00-${"4".repeat(32)}-${parent}-00` },
    });
    await client.ask(question);
    await waitFor("they are sent", () => collector.spans.length >= 3);
    const [first, second, third] = collector.spans;
    expect([first?.traceId, second?.traceId]).toEqual([w3c, b3]);
    // The third caller chose not to be recorded, the fourth had no trace of its own.
    expect(third?.parentSpanId ?? "").toBe("");
    expect(first?.resource).toMatchObject({
      "service.name": "gate",
      "service.namespace": "edge",
      "service.instance.id": "gate-1",
    });
  });
});

describe("names of envoyproxy/ratelimit's statistics", () => {
  it("count hits below domain and rule: total, over, near, within, shadow, negative", async () => {
    const { headgate, askAll, ask } = await startDropIn(stage, { policy });
    await askAll({ descriptors: [["user=a"]], hits: 9 });
    await askAll({ descriptors: [["user=a"]], hits: 4 });
    await askAll({ descriptors: [["user=a"]], hits: 4 });
    await askAll({ descriptors: [{ entries: ["user=a"], hits: 2n, isRefund: true }] });
    for (let count = 0; count < 3; count += 1) await ask("shadowed=a");
    await askAll({ domain: "nobody", descriptors: [["user=a"]] });
    const all = await statistics(headgate);
    const under = (path: string): Readonly<Record<string, number | undefined>> =>
      Object.fromEntries(hitNames.map((name) => [name, all.get(`${hits}.${path}.${name}`)]));
    expect(under("user")).toEqual({
      total_hits: 17,
      within_limit: 9,
      over_limit: 8,
      near_limit: 1,
      shadow_mode: 0,
      over_limit_with_local_cache: 4,
      total_negative_hits: 2,
    });
    expect(under("shadowed")).toMatchObject({ total_hits: 3, shadow_mode: 2 });
    // Domains that nobody knows are callers' texts, so one name stands for all of them.
    expect(all.get("ratelimit.service.rate_limit.unknown.domain_not_found")).toBe(1);
  });

  it("count policies loaded, SHADOW_MODE's passes, and failures by their side", async () => {
    const redis = await startRedis(stage);
    const env = {
      ...redisEnv(redis.port),
      SHADOW_MODE: "true",
      HEADGATE_ON_STORE_FAILURE: "error",
    };
    const { headgate, askAll } = await startDropIn(stage, { policy, env });
    await askAll({ descriptors: [["user=a"]], hits: 11 });
    await askAll({ descriptors: [] });
    await redis.kill();
    expect(await askAll({ descriptors: [["user=b"]] })).toBe("UNAVAILABLE");
    const all = await statistics(headgate);
    expect(all.get("ratelimit.service.config_load_success")).toBe(1);
    expect(all.get("ratelimit.service.config_load_error")).toBe(0);
    expect(all.get("ratelimit.service.global_shadow_mode")).toBe(1);
    expect(all.get("ratelimit.service.call.should_rate_limit.service_error")).toBe(1);
    expect(all.get("ratelimit.service.call.should_rate_limit.redis_error")).toBe(1);
  });

  it("count calls and connections to each Redis", async () => {
    const [main, second] = await Promise.all([startRedis(stage), startRedis(stage)]);
    const env = {
      ...redisEnv(main.port),
      REDIS_PERSECOND: "true",
      REDIS_PERSECOND_URL: `127.0.0.1:${second.port}`,
    };
    const { headgate, ask } = await startDropIn(stage, { policy, env });
    await ask("user=a");
    await ask("burst=a");
    const all = await statistics(headgate);
    expect(all.get("ratelimit_server.ShouldRateLimit.total_requests")).toBe(2);
    for (const pool of ["redis_pool", "redis_per_second_pool"]) {
      expect(all.get(`ratelimit.${pool}.cx_active`)).toBeGreaterThan(0);
      expect(all.get(`ratelimit.${pool}.cx_total`)).toBeGreaterThan(0);
      expect(all.get(`ratelimit.${pool}.cx_local_close`)).toBe(0);
    }
  });

  it("hold no character that ends a name: of values, addresses and colons", async () => {
    const { headgate, ask } = await startDropIn(stage, { policy });
    await ask("plan=free", "address=10.0.0.1:80|x");
    await ask("route=/a:b", "caller=me");
    const names = [...(await statistics(headgate)).keys()];
    expect(names).toContain(`${hits}.plan_free.address_10_0_0_1_80_x.total_hits`);
    expect(names).toContain(`${hits}.route_/a_b.caller.total_hits`);
  });
});

const hitNames = [
  "total_hits",
  "over_limit",
  "near_limit",
  "within_limit",
  "shadow_mode",
  "over_limit_with_local_cache",
  "total_negative_hits",
];

const prometheusOn = { USE_PROMETHEUS: "true", PROMETHEUS_PATH: "/stats/prometheus" };

const mogrified = {
  USE_DOG_STATSD: "true",
  USE_DOG_STATSD_MOGRIFIERS: "HITS",
  DOG_STATSD_MOGRIFIER_HITS_PATTERN:
    "^ratelimit\\.service\\.rate_limit\\.([^.]+)\\.(.+)\\.([^.]+)$",
  DOG_STATSD_MOGRIFIER_HITS_NAME: "gate.$3",
  DOG_STATSD_MOGRIFIER_HITS_TAGS: "domain:$1,rule:$2",
};

const statsNames = [
  "USE_STATSD",
  "STATSD_HOST",
  "STATSD_PORT",
  "USE_DOG_STATSD",
  "USE_DOG_STATSD_MOGRIFIERS",
  "USE_PROMETHEUS",
  "PROMETHEUS_ADDR",
  "PROMETHEUS_PATH",
  "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS",
  "EXTRA_TAGS",
  "STATS_FLUSH_INTERVAL",
  "DISABLE_STATS",
];

const tracingNames = [
  "TRACING_ENABLED",
  "TRACING_SERVICE_NAME",
  "TRACING_SERVICE_NAMESPACE",
  "TRACING_SERVICE_INSTANCE_ID",
  "TRACING_EXPORTER_PROTOCOL",
  "TRACING_SAMPLING_RATE",
];
