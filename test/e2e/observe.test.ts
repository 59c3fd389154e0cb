import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { defaultGenerateOptions } from "../../src/generate/base/generate-options.js";
import { plainTree } from "../../src/generate/base/plain-tree.js";
import { alertRules } from "../../src/generate/observe/alerts.js";
import { generateDashboards } from "../../src/generate/observe/dashboards.js";
import { TestAuthority } from "../support/certificates.js";
import { dashboardShape } from "../support/dashboard-grid.js";
import type { Envoy } from "../support/envoy.js";
import { openExchange } from "../support/ext-proc.js";
import { freePort } from "../support/free-port.js";
import { policyOf } from "../support/generated.js";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { readPage, readQuery } from "../support/promql.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { TlsFolder } from "../support/tls-folder.js";
import { startUpstream } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";
import { XdsServer } from "../support/xds-server.js";

const stage = useStage("test");

/** Metrics by name, with their labels: of several pages together. */
type Pages = Map<string, Set<string>>;

function add(pages: Pages, text: string): void {
  for (const [metric, labels] of readPage(text)) {
    const known = pages.get(metric) ?? new Set();
    for (const label of labels) known.add(label);
    pages.set(metric, known);
  }
}

/** What Prometheus itself puts on every series that it scrapes; and a label of Istio's Envoys. */
const scraped = ["job", "instance", "namespace", "pod", "cluster_name"];

/** What is wrong with a query, given what there is. */
function faultsOf(expr: string, pages: Pages): readonly string[] {
  const { isRight, selectors, grouping } = readQuery(expr);
  if (!isRight) return [`${expr} is no query`];
  const known = new Set([
    ...scraped,
    ...selectors.flatMap(({ metric }) => [...(pages.get(metric) ?? [])]),
  ]);
  const unknown = selectors.flatMap(({ metric, labels }) => {
    const own = pages.get(metric);
    if (own === undefined) return [`there is no metric ${metric}`];
    const wrong = labels.filter((label) => !scraped.includes(label) && !own.has(label));
    return wrong.map((label) => `${metric} has no label ${label}`);
  });
  const apart = grouping.filter((label) => !known.has(label));
  return [...unknown, ...apart.map((label) => `no series of ${expr} has a label ${label}`)];
}

/** Everything that dashboards and alerts may be made of, in one policy or two. */
const limits = `
  rateLimits:
    - domain: shop
      descriptors:
        - {key: user, rate_limit: {unit: minute, requests_per_unit: 40}, on_store_failure: allow}
        - {key: team, rate_limit: {unit: minute, requests_per_unit: 4}, on_store_failure: deny}
        - {key: plan, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 4}}
        - {key: strict, rate_limit: {unit: minute, requests_per_unit: 4}, on_store_failure: error}
        - {key: path, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 4}}
  quotas:
    - {name: own, domain: shop, bucket: [{header: x-team, as: team}]}
`;

function ordersAt(port: number): string {
  return `
    - name: orders
      upstream: {address: 127.0.0.1, port: ${port}}
      rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}
      priority: {rules: [{when: 'request.path.startsWith("/checkout")', is: critical}]}
      admission:
        maxInFlight: 2
        shedAt: {low: 0.75, normal: 0.90, high: 0.95}
        queue: {size: 1, maxWait: 300ms}
        estimatedWait: {sigmoid: {midpoint: 1s, slope: 4}}
        gate: {openBelow: 0.4, closeAbove: 0.8}
        throttle: {k: 2}
        dryRun: [load]
      concurrency:
        law: gradient
        limits: {initial: 2, min: 1, max: 4}
        sources: [envoyMetrics]
        feedback: [circuitBreakers]
      retries: {}
      localRateLimit: {requests: 500}
      adaptiveConcurrency: {}
      admissionControl: {}
    - name: linearizer
      upstream: {address: 127.0.0.1, port: ${port}}
      hosts: [linearizer.example]
      adaptiveConcurrency: {}
      admissionControl: {}
      admission: {queue: {size: 10, maxWait: 1s}}
      concurrency:
        law: signal
        limits: {min: 1, max: 4}
        per: {header: x-database, names: [ledger]}
        signal:
          fixed: 5
          target: 10
          critical: 100
          thresholds: [{name: ledger, target: 2, critical: 20}]
`;
}

/** A Headgate of everything, and the Envoy that is generated for it. */
async function startBoth() {
  const redis = await startRedis(stage);
  const upstream = await startUpstream(stage);
  const controlPort = await freePort();
  const headgate = await HostedHeadgate.prepare(stage, {
    policy: "",
    env: {
      ...redisEnv(redis.port),
      HEADGATE_CONTROL_ADDR: `127.0.0.1:${controlPort}`,
      HEADGATE_NEW_KEYS_PER_SECOND_MAX: "1",
    },
  });
  const place = `{address: 127.0.0.1, port: ${headgate.grpcPort}, controlPort: ${controlPort}`;
  const { envoy, ports, policy } = await startGeneratedEnvoy(stage, {
    services: ordersAt(upstream.port),
    more: limits,
    proxies: `
      headgate: ${place}, rateLimitTimeout: 1s}
      overload: {maxHeap: 1Gi, maxConnections: 1000}
    `,
  });
  await writeFile(headgate.policyPath, policy);
  await headgate.restart();
  return { redis, headgate, controlPort, envoy, ports, policy };
}

describe("queries of dashboards and alerts", () => {
  it("name what Headgate and Envoy really have", async () => {
    const pages: Pages = new Map();
    const { redis, headgate, controlPort, envoy, ports, policy } = await startBoth();
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const stats = async (): Promise<string> => {
      return (await http.send({ port: ports.adminPort, path: "/stats/prometheus" })).body;
    };
    await waitFor("a rate limit lets somebody pass", async () => {
      await send(envoy);
      return (await stats()).includes("envoy_cluster_ratelimit_headgate_ok{");
    });
    for (const key of ["user", "team", "plan", "path"]) await charge(headgate, key, 48);
    await breakProtocol(headgate.grpcPort);
    await breakDiscovery(controlPort);
    const scrape = async (): Promise<string> => (await headgate.get("/metrics")).body;
    await waitFor(
      "the fleet has a snapshot",
      async () => {
        return (await scrape()).includes("headgate_fleet_shares{");
      },
      { withinMs: 20_000 },
    );
    await waitFor(
      "admission and the filters are counted",
      async () => {
        await send(envoy);
        await newcomers(headgate);
        const page = await scrape();
        return liveSeries.every((name) => page.includes(name));
      },
      { withinMs: 30_000 },
    );
    add(pages, await scrape());
    await redis.kill();
    await waitFor(
      "limits are answered without the store",
      async () => {
        await charge(headgate, "user", 1);
        await charge(headgate, "strict", 1);
        const page = await scrape();
        return ["headgate_fallback_decisions_total{", "headgate_failed_requests_total{"].every(
          (name) => page.includes(name),
        );
      },
      { withinMs: 20_000 },
    );
    add(pages, await scrape());
    add(pages, await stats());
    await headgate.terminate();
    await waitFor(
      "Envoy is without Headgate",
      async () => {
        await send(envoy);
        return (await stats()).includes("envoy_cluster_ratelimit_headgate_failure_mode_allowed{");
      },
      { withinMs: 30_000 },
    );
    add(pages, await stats());
    add(pages, await pageWithTls());
    add(pages, await pageWithControlPlane());
    const queries = queriesOf(policy);
    expect(queries.length).toBeGreaterThan(150);
    expect([...new Set(queries.flatMap((expr) => faultsOf(expr, pages)))].sort()).toEqual([]);
    expect(faultsOf("rate(headgate_nothing[5m])", pages)).toHaveLength(1);
    expect(faultsOf('sum by (nobody) (headgate_build_info{colour="red"})', pages)).toHaveLength(2);
  }, 180_000);
});

/** What shows only after a while of traffic. */
const liveSeries = [
  "headgate_admission_decisions_total{",
  "headgate_fleet_rtt_seconds{",
  "headgate_fleet_min_rtt_seconds{",
  "headgate_overflow_descriptors_total{",
  "headgate_exchange_faults_total{",
  "headgate_quota_assigned_rate{",
];

/** Every query that is generated for a policy. */
function queriesOf(text: string): readonly string[] {
  const policy = policyOf([{ file: "policy.yaml", text }]);
  const { documents } = generateDashboards(policy, defaultGenerateOptions);
  const panels = documents.flatMap(({ parts }) => {
    return parts.flatMap((part) => dashboardShape.parse(plainTree(part)).panels);
  });
  return [
    ...alertRules(policy, { replicas: 2, namespace: "headgate" }).map(({ expr }) => expr),
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ];
}

/** Several at once, to both services. */
async function send(envoy: Envoy): Promise<void> {
  const http = new HttpClient();
  const asks = Array.from({ length: 12 }, (_, index) => {
    const isLinear = index % 3 === 0;
    const headers = isLinear
      ? { host: "linearizer.example", "x-database": "ledger" }
      : index % 3 === 1
        ? { host: "orders", "x-user": "ann" }
        : { host: "orders", "x-team": "a" };
    return http.send({ port: envoy.port, path: index % 2 === 0 ? "/checkout" : "/", headers });
  });
  await Promise.allSettled(asks);
  await http.close();
}

/** More new callers at once than are taken for new ones. */
async function newcomers(headgate: HostedHeadgate): Promise<void> {
  const ask = (value: string) => ({ entries: [{ key: "user", value }] });
  const descriptors = Array.from({ length: 8 }, (_, index) => ask(`new ${index}`));
  await headgate.postJson({ domain: "shop", descriptors });
}

/** What is no message. */
async function breakProtocol(grpcPort: number): Promise<void> {
  const client = new Client(`127.0.0.1:${grpcPort}`, credentials.createInsecure());
  const exchange = openExchange({ client });
  exchange.send(Buffer.from([0xff]));
  await exchange.over();
  client.close();
}

async function breakDiscovery(controlPort: number): Promise<void> {
  const client = new Client(`127.0.0.1:${controlPort}`, credentials.createInsecure());
  const asIs = (bytes: Buffer): Buffer => bytes;
  const path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
  const stream = client.makeBidiStreamRequest(path, asIs, asIs);
  const over = once(stream, "error");
  stream.resume();
  stream.write(Buffer.from([0xff]));
  await over;
  client.close();
}

async function charge(headgate: HostedHeadgate, key: string, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    await headgate.postJson({
      domain: "shop",
      descriptors: [{ entries: [{ key, value: "ann" }] }],
    });
  }
}

async function pageWithTls(): Promise<string> {
  const files = new TlsFolder(join(stage.folder, "certs"));
  await files.write({ server: new TestAuthority().issue({ names: ["headgate.shop"] }) });
  const headgate = await HostedHeadgate.start(stage, {
    policy: "domain: shop\n",
    env: files.env,
  });
  const stranger = connect(headgate.grpcPort, "127.0.0.1");
  stage.atEnd(() => void stranger.destroy());
  stranger.on("error", () => {});
  stranger.write("GET / HTTP/1.1\r\n\r\n");
  let page = "";
  await waitFor("a client is refused", async () => {
    page = (await headgate.get("/metrics")).body;
    return page.includes("headgate_tls_refused_connections_total{");
  });
  return page;
}

async function pageWithControlPlane(): Promise<string> {
  const server = await XdsServer.start(stage);
  const headgate = await HostedHeadgate.open(stage, {
    env: { CONFIG_TYPE: "GRPC_XDS_SOTW", CONFIG_GRPC_XDS_SERVER_URL: server.address },
  });
  let page = "";
  await waitFor("its control plane is counted", async () => {
    page = (await headgate.get("/metrics")).body;
    return page.includes("headgate_xds_connected");
  });
  return page;
}
