import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { startApp } from "../../src/app/app.js";
import { grpcStatuses } from "../../src/core/base/grpc-status.js";
import { controlMessageBytesMax } from "../../src/rpc/control/control-plane.js";
import { startTestApp, type TestApp } from "../support/app.js";
import { TestAuthority, type TestCertificate } from "../support/certificates.js";
import { configOf, type Env } from "../support/configured-store.js";
import { ControlClient } from "../support/control-client.js";
import { counterFamily, gaugeFamily, testNode } from "../support/control-rig.js";
import { sumOfSeries } from "../support/headgate-process.js";
import { parseHere } from "../support/parse-here.js";
import { policyOf } from "../support/service-texts.js";
import { useStage } from "../support/stage.js";
import { TlsFolder } from "../support/tls-folder.js";
import { waitFor, within } from "../support/wait.js";

const stage = useStage("test");
const policy = policyOf(
  "{name: orders, concurrency: {law: gradient, sources: [envoyMetrics], " +
    "feedback: [circuitBreakers]}}",
);

interface Started extends TestApp {
  readonly port: number;
}

async function start(env: Env = {}): Promise<Started> {
  const started = await startTestApp(stage, policy, { DEBUG_PORT: "0", ...env });
  return { ...started, port: started.app.controlAddress?.port ?? 0 };
}

function connect(...args: ConstructorParameters<typeof ControlClient>): ControlClient {
  const client = new ControlClient(...args);
  stage.atEnd(() => client.close());
  return client;
}

async function fleetOf({ app }: Started, query = ""): Promise<Record<string, unknown>> {
  const port = app.debugAddress?.port;
  const response = await fetch(`http://127.0.0.1:${port}/debug/fleet${query}`);
  expect(response.headers.get("content-type")).toBe("application/json");
  return JSON.parse(await response.text());
}

describe("the control port", () => {
  it("tells an Envoy its layer, listens to it, and shows it", async () => {
    const started = await start();
    const client = connect(started.port);
    const layers = client.subscribe(testNode("edge-1", [1, 41]));
    await waitFor("a layer comes", () => layers.layers.length === 1);
    const gauge = gaugeFamily("cluster.orders.upstream_rq_active", 7);
    client.push({ identifier: { node: testNode("edge-1", [1, 41]) }, envoyMetrics: [gauge] });
    client.push({ envoyMetrics: [] });
    const node = await waitFor("it is shown", async () => {
      const { nodes } = await fleetOf(started, "?node=edge-1");
      const [first] = nodes as readonly Record<string, unknown>[];
      return Object.keys(Object(first?.["services"])).length === 1 ? first : undefined;
    });
    expect(node).toMatchObject({
      id: "edge-1",
      program: "envoy 1.41.0",
      streams: ["layers", "metrics"],
      problems: ["other_version"],
      // A snapshot is made at once, and each second.
      layer: { sentVersion: expect.stringMatching(/^1\.\d+$/) },
      clusters: { orders: { connectionOverflowCount: 0 } },
      services: { orders: { inFlight: 7, heldShare: 1_000 } },
    });
    expect(await fleetOf(started, "?node=edge-2")).toMatchObject({ nodeCount: 1, nodes: [] });
    expect((await fleetOf(started))["problems"]).toMatchObject({
      servicesWithoutCluster: [],
      failedStreams: { node_without_id: 1 },
    });
    const text = await started.metrics();
    expect(sumOfSeries(text, "headgate_control_nodes", {})).toBe(1);
    expect(sumOfSeries(text, "headgate_control_node_streams", { stream: "layers" })).toBe(1);
    expect(sumOfSeries(text, "headgate_control_inflight", { service: "orders" })).toBe(7);
    const wrong = { problem: "other_version" };
    expect(sumOfSeries(text, "headgate_control_node_problems", wrong)).toBe(1);
    const nameless = { cause: "node_without_id" };
    expect(sumOfSeries(text, "headgate_control_failed_streams_total", nameless)).toBe(1);
    // A name that an Envoy has given itself is in no label.
    expect(text).not.toContain("edge-1");
  });

  it("takes a first message as large as Envoy's, and none beyond its bound", async () => {
    const started = await start();
    const client = connect(started.port);
    const extensions = Array.from({ length: 600 }, (_, i) => {
      return { name: `envoy.extensions.number.${i}`, category: "x".repeat(80) };
    });
    const node = { ...testNode("edge-1"), extensions };
    const gauge = gaugeFamily("cluster.orders.upstream_rq_active", 7);
    client.push({ identifier: { node }, envoyMetrics: [gauge] });
    await waitFor("it is known", async () => (await fleetOf(started))["nodeCount"] === 1);
    const many = Array.from({ length: 20_000 }, (_, i) => {
      return counterFamily(`cluster.c${i}.upstream_rq_retry_overflow_of_a_long_name`, i);
    });
    const large = client.push({ identifier: { node }, envoyMetrics: many });
    const bytes = Buffer.alloc(controlMessageBytesMax + 1);
    const tooLarge = client.open("/envoy.service.metrics.v3.MetricsService/StreamMetrics");
    tooLarge.send(bytes);
    const { code } = await within("it ends", 10_000, tooLarge.ended);
    expect(code).toBe(grpcStatuses.resourceExhausted);
    await waitFor("the large one was read", async () => {
      const text = await started.metrics();
      return sumOfSeries(text, "headgate_control_messages_total", { service: "metrics" }) === 2;
    });
    large.cancel();
  });

  it("serves hundreds of Envoys, each on a connection of its own", async () => {
    const started = await start();
    const streams = Array.from({ length: 200 }, (_, i) =>
      connect(started.port).subscribe(testNode(`edge-${i}`)),
    );
    await waitFor("all have a layer", () => streams.every(({ layers }) => layers.length > 0), {
      withinMs: 30_000,
    });
    const page = await fleetOf(started);
    expect(page["nodeCount"]).toBe(200);
  });

  it("ends its streams when the process stops, so that Envoys find another replica", async () => {
    const started = await start();
    const stream = connect(started.port).subscribe(testNode("edge-1"));
    await waitFor("a layer comes", () => stream.layers.length === 1);
    const closing = started.app.close();
    const { code } = await within("the stream ends", 10_000, stream.ended);
    expect(code).toBe(grpcStatuses.unavailable);
    expect(await closing).toBe(true);
  });

  it("is not there where it is taken, or not wanted, and the service goes on", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    stage.atEnd(() => void server.close());
    const address = server.address();
    const taken = typeof address === "object" ? address?.port : 0;
    const started = await start({ HEADGATE_CONTROL_ADDR: `127.0.0.1:${taken}` });
    expect(started.app.controlAddress).toBeUndefined();
    expect(started.events).toContainEqual({ event: "controlPortFailed" });
    const { status } = await fetch(`http://127.0.0.1:${started.app.httpAddress?.port}/readyz`);
    expect(status).toBe(200);
    const unwanted = await start({ HEADGATE_CONTROL_ADDR: "" });
    expect(unwanted.app.controlAddress).toBeUndefined();
    expect(unwanted.events.map(({ event }) => event)).not.toContain("controlPortFailed");
  });
});

describe("the control port without any setting of ours", () => {
  const limit = "{key: user, rate_limit: {unit: day, requests_per_unit: 3}}";
  const ratelimitText = `domain: shop\ndescriptors:\n  - ${limit}\n`;
  const ownText =
    "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: shop}\n" +
    `spec: {rateLimits: [{domain: shop, descriptors: [${limit}]}]}\n`;

  /** Whether it opens for files in RUNTIME_ROOT, as envoyproxy/ratelimit names them. */
  async function opensFor(files: Readonly<Record<string, string>>): Promise<boolean> {
    const root = await mkdtemp(join(stage.folder, "runtime-"));
    await mkdir(join(root, "config"));
    for (const [name, text] of Object.entries(files)) {
      await writeFile(join(root, "config", name), text);
    }
    const ports = { PORT: "0", GRPC_PORT: "0", DEBUG_PORT: "0" };
    const config = configOf({ RUNTIME_ROOT: root, RUNTIME_SUBDIRECTORY: "", ...ports });
    expect(config.ownPolicyControlAddress).toEqual({ host: "0.0.0.0", port: 18_000 });
    // A free one, since tests run side by side.
    const anyPort = { ...config, ownPolicyControlAddress: { host: "127.0.0.1", port: 0 } };
    const app = await startApp(anyPort, { parser: parseHere });
    stage.atEnd(() => app.close(0));
    return app.controlAddress !== undefined;
  }

  it("is open where the files hold a kind: Policy, and else closed", async () => {
    expect(await opensFor({ "a.yaml": ratelimitText })).toBe(false);
    expect(await opensFor({ "a.yaml": ownText })).toBe(true);
    const other = ratelimitText.replace("shop", "mail");
    expect(await opensFor({ "a.yaml": other, "b.yaml": ownText })).toBe(true);
  });
});

describe("the control port behind certificates", () => {
  const authority = new TestAuthority();
  const envoy = authority.issue({ uris: ["spiffe://shop/edge"] });

  async function startSecured(): Promise<Started> {
    const files = new TlsFolder(join(stage.folder, "certs"));
    const server = authority.issue({ names: ["headgate.shop"] });
    await files.write({ server, clientAuthority: authority.certificate });
    return start(files.mutualEnv);
  }

  function secure(shown?: TestCertificate) {
    const root = Buffer.from(authority.certificate);
    if (shown === undefined) return credentials.createSsl(root);
    return credentials.createSsl(root, Buffer.from(shown.key), Buffer.from(shown.certificate));
  }

  it("serves those who show one of ours, and refuses all others", async () => {
    const started = await startSecured();
    const known = connect(started.port, secure(envoy)).subscribe(testNode("edge-1"));
    await waitFor("a layer comes", () => known.layers.length === 1);
    const stranger = new TestAuthority().issue({ uris: ["spiffe://shop/edge"] });
    for (const shown of [secure(), secure(stranger), credentials.createInsecure()]) {
      const stream = connect(started.port, shown).subscribe(testNode("edge-2"));
      const { code } = await within("it is refused", 10_000, stream.ended);
      expect(code).toBe(grpcStatuses.unavailable);
    }
    expect((await fleetOf(started))["nodeCount"]).toBe(1);
    expect(await started.metric("headgate_tls_refused_connections_total")).toBeGreaterThan(2);
  });

  it("takes renewed certificates, as the gRPC port does", async () => {
    const files = new TlsFolder(join(stage.folder, "certs"));
    const server = authority.issue({ names: ["headgate.shop"] });
    await files.write({ server, clientAuthority: authority.certificate });
    const started = await start(files.env);
    const first = connect(started.port, secure()).subscribe(testNode("edge-1"));
    await waitFor("a layer comes", () => first.layers.length === 1);
    const other = new TestAuthority();
    await files.write({ server: other.issue({ names: ["headgate.shop"] }) });
    const root = Buffer.from(other.certificate);
    await waitFor("the new certificate is shown", async () => {
      const client = connect(started.port, credentials.createSsl(root));
      const stream = client.subscribe(testNode("edge-2"));
      const isServed = await Promise.race([
        stream.ended.then(() => false),
        waitFor("a layer comes", () => stream.layers.length === 1).catch(() => false),
      ]);
      client.close();
      return isServed;
    });
    // Who was there before stays.
    expect(first.layers.length).toBeGreaterThan(0);
  });
});
