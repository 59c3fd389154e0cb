import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type PushTimes, pushTimesFor } from "../../src/rpc/control/layer-pusher.js";
import { standbyLoadReportSeconds } from "../../src/rpc/nodes/load-report.js";
import { type ControlPort, ControlPortProcess } from "../support/control-port.js";
import { Envoy } from "../support/envoy.js";
import type { Json } from "../support/envoy-config.js";
import { type EnvoyControl, joinedTo } from "../support/envoy-control.js";
import { FakeRandom } from "../support/fake-random.js";
import { type HoldingUpstream, startHoldingUpstream } from "../support/holding-upstream.js";
import { type HttpAnswer, HttpClient } from "../support/http-client.js";
import { policyOf } from "../support/service-texts.js";
import { type Stage, useStage } from "../support/stage.js";
import { startControlPort } from "../support/stubbed-control-port.js";
import { TcpFaultProxy } from "../support/tcp-fault-proxy.js";
import { waitFor } from "../support/wait.js";
import { readYamlFile } from "../support/yaml-file.js";

/** The cluster behind Envoy bears this name. */
const policy = policyOf(
  "{name: upstream, concurrency: {law: gradient, sources: [envoyMetrics, loadReports], " +
    "feedback: [circuitBreakers]}}",
);

/** A layer that nobody renews ends soon, and is renewed often enough. */
const quickTimes: PushTimes = {
  ttlMs: 2_000,
  refreshMs: 600,
  gapMs: 100,
  unacknowledgedMsMax: 30_000,
};

const configuredShare = 30;

const breakers: Json = {
  circuit_breakers: {
    thresholds: [
      { max_requests: configuredShare, max_pending_requests: configuredShare },
      { priority: "HIGH", max_requests: configuredShare },
    ],
  },
};

interface Rig<Port extends ControlPort = ControlPort> {
  readonly port: Port;
  readonly envoy: Envoy;
  readonly upstream: HoldingUpstream;
  /** Sends so many at once; answers come when the upstream is told to. */
  send(count: number): readonly Promise<HttpAnswer>[];
}

async function startRig(stage: Stage, control: Partial<EnvoyControl> = {}): Promise<Rig> {
  const port = await startControlPort(stage, { port: 0, policy, times: quickTimes });
  return joinRig(stage, port, control);
}

async function startMortalRig(stage: Stage, times: PushTimes): Promise<Rig<ControlPortProcess>> {
  return joinRig(stage, await ControlPortProcess.start(stage, { port: 0, policy, times }));
}

async function joinRig<Port extends ControlPort>(
  stage: Stage,
  port: Port,
  control: Partial<EnvoyControl> = {},
): Promise<Rig<Port>> {
  const upstream = await startHoldingUpstream(stage);
  const envoy = await startEnvoy(stage, upstream, { port: port.port, ...control });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  const send = (count: number) =>
    Array.from({ length: count }, () => http.send({ port: envoy.port }));
  return { port, envoy, upstream, send };
}

function startEnvoy(
  stage: Stage,
  upstream: HoldingUpstream,
  control: Partial<EnvoyControl> & Pick<EnvoyControl, "port">,
): Promise<Envoy> {
  return Envoy.start(stage, {
    upstreamPort: upstream.port,
    headgatePorts: [],
    rateLimits: [],
    upstreamCluster: breakers,
    ...joinedTo({ nodeId: "edge-1", ...control }),
  });
}

/** Asks, again and again, how many flushes have come since the last load report. */
function betweenLoads(
  port: ControlPort,
  isEnough: (flushCount: number) => boolean,
): () => Promise<boolean> {
  let last: Readonly<Record<"metrics" | "load_stats", number>> | undefined;
  return async () => {
    const { messages } = await port.look();
    if (last?.load_stats !== messages.load_stats) last = messages;
    return isEnough(messages.metrics - last.metrics);
  };
}

/** How many of so many requests are let into work at once. */
async function letIn({ send, upstream }: Rig, count: number): Promise<number> {
  const answers = send(count);
  let refusedCount = 0;
  for (const answer of answers) {
    void answer.then(({ status }) => {
      if (status === 503) refusedCount += 1;
    });
  }
  await waitFor("all are let in or refused", () => upstream.heldCount + refusedCount === count);
  const heldCount = upstream.heldCount;
  upstream.release();
  await Promise.all(answers);
  return heldCount;
}

async function acknowledged({ port }: Rig, version: string): Promise<void> {
  await waitFor(`Envoy acknowledges ${version}`, async () => {
    const { nodes } = (await port.look()).fleet;
    return nodes[0]?.layer?.acknowledgedVersion === version;
  });
}

const json = z.record(z.string(), z.unknown());

/** What of an Envoy's configuration joins it to the control port. */
const shape = z.object({
  node: json,
  stats_flush_interval: z.string(),
  stats_config: json,
  stats_sinks: z.array(json),
  cluster_manager: json,
  layered_runtime: json,
  static_resources: z.object({ clusters: z.array(json) }),
});

/** The example's cluster, with a test's upstream behind it. */
function ordersAt(port: number, orders: Json | undefined): Json {
  return JSON.parse(JSON.stringify(orders).replace("10080", String(port)));
}

describe("a real Envoy on the control port", () => {
  const stage = useStage("test");

  it.each(["rtds", "ads"] as const)("lets in its share, as told over %s", async (over) => {
    const rig = await startRig(stage, { over });
    await acknowledged(rig, "0.0");
    expect(await letIn(rig, 40)).toBe(configuredShare);
    for (const [version, share] of [
      [1, 7],
      [2, 3],
      [3, 12],
    ] as const) {
      await rig.port.say({ version, services: { upstream: { shares: { "edge-1": share } } } });
      await acknowledged(rig, `1.${version}`);
      expect(await letIn(rig, 40)).toBe(share);
    }
    const [node] = (await rig.port.look()).fleet.nodes;
    expect(node).toMatchObject({ id: "edge-1", program: "envoy 1.40.0", problems: [] });
  });

  it("goes back to its configured default when the control port dies", async () => {
    const rig = await startMortalRig(stage, quickTimes);
    await rig.port.say({ version: 1, services: { upstream: { shares: { "edge-1": 4 } } } });
    await acknowledged(rig, "1.1");
    // Beyond its time: it is renewed.
    const fromMs = performance.now();
    await waitFor("twice its time passes", () => performance.now() - fromMs > 2 * quickTimes.ttlMs);
    expect(await letIn(rig, 40)).toBe(4);
    await rig.port.kill();
    await waitFor("the default is back", async () => (await letIn(rig, 40)) === configuredShare, {
      withinMs: 10 * quickTimes.ttlMs,
    });
  });

  it("keeps its share while a control port that died is started again", async () => {
    // Longer than a start takes on the busiest machine.
    const times = pushTimesFor(60_000);
    const rig = await startMortalRig(stage, times);
    await rig.port.say({ version: 1, services: { upstream: { shares: { "edge-1": 4 } } } });
    await acknowledged(rig, "1.1");
    const diedMs = performance.now();
    await rig.port.kill();
    const again = await ControlPortProcess.start(stage, { port: rig.port.port, policy, times });
    await waitFor("Envoy is back", async () => (await again.look()).fleet.nodes.length === 1);
    expect(await letIn(rig, 40)).toBe(4);
    expect(performance.now() - diedMs).toBeLessThan(times.ttlMs);
    await again.say({ version: 2, services: { upstream: { shares: { "edge-1": 6 } } } });
    await acknowledged({ ...rig, port: again }, "1.2");
    expect(await letIn(rig, 40)).toBe(6);
  });

  it("gets its default back at once when a snapshot says nothing of its service", async () => {
    const rig = await startRig(stage);
    await rig.port.say({ version: 1, services: { upstream: { shares: { "edge-1": 4 } } } });
    await acknowledged(rig, "1.1");
    expect(await letIn(rig, 40)).toBe(4);
    await rig.port.say({ version: 2, services: {} });
    await acknowledged(rig, "1.2");
    expect(await letIn(rig, 40)).toBe(configuredShare);
  });
});

// They wait for reports, and for nothing that is over after a time.
describe.concurrent("a real Envoy on the control port, beside others", () => {
  const stage = useStage("file");

  it.each([
    { reported: "statistics", reportsLoad: false },
    { reported: "statistics with buckets", reportsLoad: false, times: "SUMMARY_AND_HISTOGRAM" },
    { reported: "statistics of buckets", reportsLoad: false, times: "HISTOGRAM" },
    { reported: "labelled statistics", reportsLoad: false, emitsLabels: true },
    { reported: "load reports", pushesMetrics: false },
    { reported: "both" },
  ] as const)("tells what it does by $reported", async ({ reported, ...control }) => {
    const rig = await startRig(stage, control);
    await rig.port.say({ version: 1, services: { upstream: { shares: { "edge-1": 10 } } } });
    await acknowledged(rig, "1.1");
    // Ten are in work, six are refused; then three fail upstream.
    const answers = rig.send(16);
    await waitFor("ten are in work", () => rig.upstream.heldCount === 10);
    await waitFor("a report says so", async () => {
      const { reports } = await rig.port.look();
      return reports.some(({ inFlight }) => inFlight === 10);
    });
    rig.upstream.release(200, 50);
    await Promise.all(answers);
    const failing = rig.send(3);
    await waitFor("three are in work", () => rig.upstream.heldCount === 3);
    rig.upstream.release(500);
    await Promise.all(failing);
    const sum = await waitFor("all of it was reported", async () => {
      const { reports } = await rig.port.look();
      const of = (pick: (report: (typeof reports)[number]) => number) =>
        reports.reduce((total, report) => total + pick(report), 0);
      const last = reports.at(-1);
      const isIdle = last?.inFlight === 0 && last.held === 10;
      const errors = of(({ errorCount }) => errorCount);
      if (!isIdle || errors < 3) return undefined;
      return {
        errors,
        drops: of(({ dropCount }) => dropCount),
        overflows: of(({ overflowCount }) => overflowCount),
        timed: of(({ latency }) => latency.count),
        sumMs: of(({ latency }) => latency.sumMs),
        leastMs: Math.min(...reports.map(({ latency }) => latency.minMs ?? Number.MAX_VALUE)),
        mostRps: Math.max(...reports.map(({ rps }) => rps)),
      };
    });
    expect(sum).toMatchObject({ errors: 3, drops: 6, overflows: 6 });
    expect(sum.mostRps).toBeGreaterThan(1);
    if (reported === "load reports") expect(sum.timed).toBe(0);
    else {
      expect(sum.timed).toBe(13);
      expect(sum.sumMs).toBeGreaterThan(10 * 50);
    }
  });

  it("reports load seldom while statistics come, and each second without", async () => {
    const upstream = await startHoldingUpstream(stage);
    const port = await startControlPort(stage, { port: 0, policy, times: quickTimes });
    const wire = await TcpFaultProxy.start(stage, {
      targetPort: port.port,
      random: new FakeRandom(1),
    });
    const envoy = await startEnvoy(stage, upstream, { port: port.port, metricsPort: wire.port });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    // Twice a second come statistics: so many between two load reports are far apart.
    await waitFor(
      "load reports stand by",
      betweenLoads(port, (flushCount) => flushCount >= 7),
    );
    wire.setFault({ kind: "reset" });
    const answers = Array.from({ length: 4 }, () => http.send({ port: envoy.port }));
    await waitFor("four are in work", () => upstream.heldCount === 4);
    const silent = (await port.look()).messages.metrics;
    await waitFor("load reports say so", async () => {
      const { reports } = await port.look();
      return reports.at(-1)?.inFlight === 4;
    });
    await waitFor("load reports come each second", async () => {
      const before = (await port.look()).messages.load_stats;
      const fromMs = performance.now();
      await waitFor("two more", async () => (await port.look()).messages.load_stats >= before + 2);
      return performance.now() - fromMs < standbyLoadReportSeconds * 1_000;
    });
    expect((await port.look()).messages.metrics).toBe(silent);
    wire.setFault({ kind: "none" });
    await waitFor(
      "load reports stand by again",
      betweenLoads(port, (count) => count >= 7),
    );
    upstream.release();
    await Promise.all(answers);
  });

  it("works with the configuration that envoy/control shows", async () => {
    const [example] = readYamlFile("envoy/control/edge/envoy.yaml");
    const { node, stats_flush_interval, stats_config, stats_sinks, ...rest } = shape.parse(example);
    const { cluster_manager, layered_runtime, static_resources } = rest;
    const [orders, control] = static_resources.clusters;
    const upstream = await startHoldingUpstream(stage);
    const shown = await readFile("envoy/control/policy.yaml", "utf8");
    const port = await startControlPort(stage, { port: 0, policy: shown });
    const there = JSON.stringify(control).replace("18000", String(port.port));
    const envoy = await Envoy.start(stage, {
      upstreamPort: upstream.port,
      headgatePorts: [],
      rateLimits: [],
      moreClusters: [JSON.parse(there), ordersAt(upstream.port, orders)],
      route: { cluster: "orders" },
      bootstrap: {
        ...{ node, stats_flush_interval, stats_config, stats_sinks },
        ...{ cluster_manager, layered_runtime },
      },
    });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const send = (count: number) =>
      Array.from({ length: count }, () => http.send({ port: envoy.port }));
    const rig = { port, envoy, upstream, send };
    await port.say({ version: 1, services: { orders: { shares: { "control-edge": 6 } } } });
    await acknowledged(rig, "1.1");
    expect(await letIn(rig, 20)).toBe(6);
    await waitFor("latencies and refusals are reported", async () => {
      const { reports } = await port.look();
      const overflows = reports.reduce((sum, { overflowCount }) => sum + overflowCount, 0);
      return overflows === 14 && reports.some(({ latency }) => latency.minMs !== undefined);
    });
    const [seen] = (await port.look()).fleet.nodes;
    expect(seen).toMatchObject({ problems: [], streams: ["layers", "loadReports", "metrics"] });
  });
});
