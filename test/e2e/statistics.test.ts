import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { HeadgateProcess, type RunningHeadgate, sumOfSeries } from "../support/headgate-process.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { startOtlpServer } from "../support/otlp-server.js";
import { RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { countedBy, startTcpStatsd, startUdpStatsd } from "../support/statsd-server.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policy = `domain: edge
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 3}
  - key: plan
    value: free
    descriptors:
      - key: user
        detailed_metric: true
        rate_limit: {unit: hour, requests_per_unit: 100}
`;

const flushes = { STATS_FLUSH_INTERVAL: "200ms", HEADGATE_DRAIN_DELAY_MS: "0" };

async function start(env: Readonly<Record<string, string>>): Promise<HostedHeadgate> {
  return HostedHeadgate.start(stage, { policy, env });
}

/** Five calls of one user, of which three fit, and two of a plan's user. */
async function call(headgate: RunningHeadgate): Promise<void> {
  const client = new RlsClient(headgate.grpcPort);
  stage.atEnd(() => client.close());
  for (let i = 0; i < 5; i += 1) await client.ask({ descriptors: [["user=a"]] });
  for (let i = 0; i < 2; i += 1)
    await client.ask({ descriptors: [["plan=free", "user=10.0.0.1"]] });
}

const hits = "ratelimit.service.rate_limit.edge";

describe("statistics of a running service", () => {
  it.each([
    { protocol: "udp", startServer: startUdpStatsd },
    { protocol: "tcp", startServer: startTcpStatsd },
  ])("reach a StatsD over $protocol while it runs, and when it stops", async (parts) => {
    const { protocol, startServer } = parts;
    const statsd = await startServer(stage);
    const place = { STATSD_HOST: "127.0.0.1", STATSD_PORT: String(statsd.port) };
    const headgate = await start({ ...flushes, ...place, STATSD_PROTOCOL: protocol });
    await call(headgate);
    const counted = (name: string): number => countedBy(statsd.lines(), name);
    await waitFor("the hits arrive", () => counted(`${hits}.user.total_hits`) === 5);
    expect(counted(`${hits}.user.within_limit`)).toBe(3);
    expect(counted(`${hits}.user.over_limit`)).toBe(2);
    const detailed = `${hits}.plan_free.user_10_0_0_1.total_hits`;
    await waitFor("the detailed hits arrive", () => counted(detailed) === 2);
    expect(counted("ratelimit.service.config_load_success")).toBe(1);
    await call(headgate);
    expect(await headgate.terminate()).toBe(true);
    await waitFor("the last hits arrive", () => counted(`${hits}.user.total_hits`) === 10);
    // Lines of one flush may come in several parts.
    const requests = "ratelimit_server.ShouldRateLimit.total_requests";
    await waitFor("the last requests arrive", () => counted(requests) === 14);
  });

  it("reach a DogStatsD with tags that are made of names", async () => {
    const statsd = await startUdpStatsd(stage);
    const headgate = await start({
      ...flushes,
      USE_DOG_STATSD: "true",
      STATSD_HOST: "127.0.0.1",
      STATSD_PORT: String(statsd.port),
      EXTRA_TAGS: "zone:eu",
      USE_DOG_STATSD_MOGRIFIERS: "HITS",
      DOG_STATSD_MOGRIFIER_HITS_PATTERN:
        "^ratelimit\\.service\\.rate_limit\\.([^.]*)\\.(.*)\\.([^.]*)$",
      DOG_STATSD_MOGRIFIER_HITS_NAME: "ratelimit.$3",
      DOG_STATSD_MOGRIFIER_HITS_TAGS: "domain:$1,path:$2",
    });
    await call(headgate);
    const tags = "#zone:eu,domain:edge,path:plan_free.user_10_0_0_1";
    await waitFor("the hits arrive", () =>
      statsd
        .lines()
        .some((line) => line.startsWith("ratelimit.total_hits:") && line.endsWith(tags)),
    );
  });

  it("leave calls alone when their receiver is away, and say so once", async () => {
    const port = await freePort();
    const place = { STATSD_HOST: "127.0.0.1", STATSD_PORT: String(port) };
    const headgate = await start({ ...flushes, ...place, STATSD_PROTOCOL: "tcp" });
    await call(headgate);
    await waitFor("it says so", () => headgate.output.includes('"statsdAway"'));
    expect(await headgate.metric("headgate_requests_total")).toBe(7);
    expect(headgate.output.split('"statsdAway"')).toHaveLength(2);
    await headgate.terminate();
  });

  it("are served by the reference's names beside ours", async () => {
    const port = await freePort();
    const addresses = { USE_PROMETHEUS: "true", PROMETHEUS_ADDR: `127.0.0.1:${port}` };
    const headgate = await start({ ...addresses, PROMETHEUS_PATH: "/stats" });
    await call(headgate);
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const { body } = await http.send({ port, path: "/stats" });
    const count = (name: string, labels: Readonly<Record<string, string>>): number =>
      sumOfSeries(body, name, labels);
    const name = "ratelimit_service_rate_limit";
    const user = { domain: "edge", key1: "user" };
    expect(count(`${name}_total_hits`, user)).toBe(5);
    expect(count(`${name}_over_limit`, user)).toBe(2);
    const detailed = { domain: "edge", key1: "plan_free", key2: "user_10_0_0_1" };
    expect(count(`${name}_total_hits`, detailed)).toBe(2);
    const method = { grpc_method: "ShouldRateLimit" };
    expect(count("ratelimit_service_total_requests", method)).toBe(7);
    expect(count("ratelimit_service_response_time_seconds_count", method)).toBe(7);
    expect(count("headgate_hits_total", { rule: "user", outcome: "within" })).toBe(3);
    expect(count("headgate_detailed_hits_total", { path: "plan_free.user_10_0_0_1" })).toBe(2);
    // The port that was there before has our own series only.
    expect((await headgate.get("/metrics")).body).not.toContain("ratelimit_service_");
  });

  it("are on the debug port, with the active limits", async () => {
    const port = await freePort();
    const headgate = await start({ DEBUG_PORT: String(port) });
    await call(headgate);
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const get = async (path: string): Promise<string> => (await http.send({ port, path })).body;
    expect(await get("/stats?filter=edge.user.total_hits")).toBe(`${hits}.user.total_hits: 5\n`);
    expect(await get("/rlconfig")).toBe(
      "edge.user: unit=HOUR requests_per_unit=3, shadow_mode: false, quota_mode: false\n" +
        "edge.plan_free.user: unit=HOUR requests_per_unit=100, shadow_mode: false, " +
        "quota_mode: false\n",
    );
  });

  it("let a second service start whose debug port is taken", async () => {
    const port = await freePort();
    await start({ DEBUG_PORT: String(port) });
    const second = await start({ DEBUG_PORT: String(port) });
    expect(second.output).toContain('"debugPortFailed"');
    expect((await second.get("/readyz")).status).toBe(200);
  });

  it("go with traces, which standard variables alone switch on", async () => {
    const collector = await startOtlpServer(stage);
    const endpoint = `http://127.0.0.1:${collector.port}`;
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_SERVICE_NAME: "limits",
      HEADGATE_DRAIN_DELAY_MS: "0",
    };
    // The libraries of OpenTelemetry look at the environment of their process themselves.
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    await call(headgate);
    expect(await headgate.terminate()).toEqual({ code: 0 });
    expect(collector.spans).toHaveLength(7);
    const outcomes = collector.spans.map(({ attributes }) => attributes["headgate.outcome"]);
    expect(outcomes.filter((outcome) => outcome === "over_limit")).toHaveLength(2);
    expect(collector.spans[0]?.resource["service.name"]).toBe("limits");
    expect(collector.bodies.join()).not.toContain("10.0.0.1");
  });
});
