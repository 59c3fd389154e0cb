import { describe, expect, it } from "vitest";
import { indexClusters } from "../../../../src/policy/services/service-clusters.js";
import type { ClusterLoad } from "../../../../src/rpc/nodes/cluster-signals.js";
import type { MetricSample } from "../../../../src/rpc/nodes/metrics-message.js";
import {
  clustersPerNodeMax,
  gradientsPerNodeMax,
  NodeSignals,
} from "../../../../src/rpc/nodes/node-signals.js";
import { reportedService } from "../../../support/control-rig.js";

const upstream = { address: "orders.shop", port: 80 };
const istioName = "outbound|80||orders.shop";
const clusters = indexClusters([reportedService("orders", { upstream }), reportedService("carts")]);

function completed(delta: number, stampMs: number, cluster = "orders"): MetricSample {
  return { kind: "count", cluster, counter: "completed", series: "completed", delta, stampMs };
}

function inFlight(value: number, stampMs: number, cluster = "orders"): MetricSample {
  return { kind: "inFlight", cluster, value, stampMs };
}

function loadOf(cluster: string, fields: Partial<ClusterLoad> = {}): ClusterLoad {
  const none = { inFlight: 0, successCount: 0, errorCount: 0, dropCount: 0, coveredMs: 1_000 };
  return { cluster, ...none, ...fields };
}

describe("NodeSignals", () => {
  it("has the rate over the time between flushes, by the Envoy's own clock", () => {
    const signals = new NodeSignals();
    signals.addMetrics([completed(1_000_000, 100_000)], 0);
    // The first flush says nothing of how long it is about.
    expect(signals.take(clusters, 0)).toMatchObject([{ service: "orders", rps: 0 }]);
    signals.addMetrics([completed(30, 100_500)], 1_900);
    signals.addMetrics([completed(10, 101_000)], 2_000);
    expect(signals.take(clusters, 2_000)).toMatchObject([{ rps: 40, atMs: 2_000 }]);
  });

  it("divides a share where the traffic is, among the clusters that it was told of", () => {
    const signals = new NodeSignals();
    const share = { default: 12, high: 0 };
    expect(signals.divideShare("orders", share)).toEqual(new Map());
    signals.addMetrics([inFlight(30, 0)], 0);
    signals.take(clusters, 0);
    expect(signals.divideShare("orders", share)).toEqual(new Map([["orders", share]]));
    signals.addMetrics([inFlight(10, 0, istioName)], 0);
    signals.take(clusters, 0);
    expect(signals.divideShare("orders", share)).toEqual(
      new Map([
        ["orders", { default: 9, high: 0 }],
        [istioName, { default: 3, high: 0 }],
      ]),
    );
  });

  it("knows inbound clusters by the workload, and adds up HIGH where all say it", () => {
    const orders = reportedService("orders", { upstream, namespace: "shop" });
    const signals = new NodeSignals();
    const at = { cluster: "orders.shop" };
    const highThresholdOf = () => 10;
    const high = (left: number, cluster: string): MetricSample => {
      return { kind: "highRemaining", cluster, value: left, stampMs: 0 };
    };
    signals.addMetrics([inFlight(9, 0, "inbound|80||"), high(8, "inbound|80||")], 0);
    const terms = { at, highThresholdOf };
    const only = indexClusters([orders]);
    expect(signals.take(only, 0, terms)).toMatchObject([{ service: "orders", highInFlight: 2 }]);
    signals.addMetrics([inFlight(9, 0), high(7, "inbound|80||")], 0);
    expect(signals.take(only, 0, terms)[0]?.highInFlight).toBeUndefined();
    signals.addMetrics([high(9, "orders")], 0);
    expect(signals.take(only, 0, terms)[0]?.highInFlight).toBe(4);
    expect(signals.take(only, 0)).toMatchObject([{ inFlight: 9 }]);
  });

  it("repeats the rate when nothing has come, and is as old as what came last", () => {
    const signals = new NodeSignals();
    signals.addMetrics([completed(0, 1_000)], 0);
    signals.addMetrics([completed(20, 2_000)], 1_000);
    signals.take(clusters, 1_000);
    expect(signals.take(clusters, 2_000)).toMatchObject([
      { rps: 20, atMs: 1_000, errorCount: 0, latency: { count: 0 } },
    ]);
  });

  it("makes the stamps of a message that has none of when it came", () => {
    const signals = new NodeSignals();
    signals.addMetrics([completed(0, 0)], 1_000);
    signals.addMetrics([completed(10, 0)], 1_500);
    expect(signals.take(clusters, 1_500)).toMatchObject([{ rps: 20 }]);
  });

  it("covers a flush once that comes in parts, and none that comes twice or late", () => {
    const signals = new NodeSignals();
    signals.addMetrics([completed(0, 1_000)], 0);
    signals.addMetrics([completed(10, 2_000)], 1_000);
    signals.addMetrics([inFlight(3, 2_000)], 1_001);
    signals.addMetrics([completed(10, 2_000)], 1_002);
    signals.addMetrics([completed(10, 1_000)], 1_003);
    expect(signals.take(clusters, 1_003)).toMatchObject([{ rps: 10, inFlight: 3 }]);
    expect(signals.ignoredCount).toBe(2);
  });

  it("begins anew with a new stream, whatever the clock of it says", () => {
    const signals = new NodeSignals();
    signals.addMetrics([completed(0, 5_000)], 0);
    signals.beginMetrics();
    signals.addMetrics([completed(50, 500_000)], 1_000);
    expect(signals.take(clusters, 1_000)).toMatchObject([{ rps: 0 }]);
    signals.addMetrics([completed(7, 501_000)], 2_000);
    expect(signals.take(clusters, 2_000)).toMatchObject([{ rps: 7 }]);
  });

  it("goes on when the Envoy's clock was set back", () => {
    const signals = new NodeSignals();
    signals.addMetrics([completed(0, 1_000_000)], 0);
    signals.addMetrics([completed(5, 500_000)], 1_000);
    signals.addMetrics([completed(5, 501_000)], 2_000);
    expect(signals.take(clusters, 2_000)).toMatchObject([{ rps: 10 }]);
  });

  it("adds up the clusters of a service", () => {
    const signals = new NodeSignals();
    signals.addMetrics([inFlight(3, 0), inFlight(4, 0, istioName), inFlight(9, 0, "carts")], 0);
    expect(signals.take(clusters, 0)).toMatchObject([
      { service: "orders", inFlight: 7 },
      { service: "carts", inFlight: 9 },
    ]);
  });

  it("takes a cluster for idle that a load report leaves out", () => {
    const signals = new NodeSignals();
    const loads = [loadOf("orders", { inFlight: 3, successCount: 5 }), loadOf("carts")];
    signals.addLoads(loads, { coveredMs: 0, nowMs: 0 });
    expect(signals.take(clusters, 0)).toMatchObject([{ inFlight: 3, rps: 5 }, {}]);
    signals.addLoads([loadOf("carts")], { coveredMs: 1_000, nowMs: 1_000 });
    expect(signals.take(clusters, 1_000)).toMatchObject([{ inFlight: 0, rps: 0, atMs: 1_000 }, {}]);
  });

  it("takes no load report for one of an hour", () => {
    const signals = new NodeSignals();
    const hourMs = 3_600_000;
    signals.addLoads([loadOf("orders", { successCount: 60, coveredMs: hourMs })], {
      coveredMs: hourMs,
      nowMs: 0,
    });
    expect(signals.take(clusters, 0)).toMatchObject([{ rps: 1 }]);
  });

  it("forgets clusters that lead to no service any more", () => {
    const signals = new NodeSignals();
    signals.addMetrics([inFlight(3, 0)], 0);
    expect(signals.take(indexClusters([]), 0)).toEqual([]);
    expect([...signals.clusters()]).toEqual([]);
  });

  it("follows so many clusters, and no more", () => {
    const signals = new NodeSignals();
    for (let i = 0; i <= clustersPerNodeMax; i += 1) {
      signals.addMetrics([inFlight(1, 0, `c${i}`)], 0);
    }
    expect([...signals.clusters()]).toHaveLength(clustersPerNodeMax);
    signals.addLoads([loadOf("one more")], { coveredMs: 0, nowMs: 0 });
    expect([...signals.clusters()]).toHaveLength(clustersPerNodeMax);
    expect(signals.ignoredCount).toBe(2);
  });
});

describe("NodeSignals, of gradient controllers", () => {
  const facts = {
    concurrencyLimit: 40,
    gradient: 1.2,
    minRttMs: 12,
    sampleRttMs: 15,
    burstQueueSize: 6,
  };

  function controller(prefix: string): readonly MetricSample[] {
    return Object.entries(facts).map(([fact, value]) => {
      return { kind: "gradient", prefix, fact: fact as keyof typeof facts, value };
    });
  }

  it("gives a listener's to the service of its name", () => {
    const signals = new NodeSignals();
    signals.addMetrics([inFlight(1, 0), inFlight(1, 0, "carts"), ...controller("carts")], 0);
    expect(signals.take(clusters, 0)).toMatchObject([
      { service: "orders", gradientFacts: undefined },
      { service: "carts", gradientFacts: facts },
    ]);
  });

  it("gives the only one to the only service, and of several none", () => {
    const signals = new NodeSignals();
    signals.addMetrics([inFlight(1, 0), ...controller("ingress")], 0);
    expect(signals.take(clusters, 0)).toMatchObject([{ gradientFacts: facts }]);
    signals.addMetrics(controller("egress"), 0);
    expect(signals.take(clusters, 0)[0]?.gradientFacts).toBeUndefined();
  });

  it("says nothing until all of its facts are there", () => {
    const signals = new NodeSignals();
    signals.addMetrics([inFlight(1, 0), ...controller("orders").slice(1)], 0);
    expect(signals.take(clusters, 0)[0]?.gradientFacts).toBeUndefined();
  });

  it("follows so many, and no more", () => {
    const signals = new NodeSignals();
    for (let i = 0; i < gradientsPerNodeMax; i += 1) signals.addMetrics(controller(`l${i}`), 0);
    signals.addMetrics([inFlight(1, 0), ...controller("orders")], 0);
    expect(signals.take(clusters, 0)[0]?.gradientFacts).toBeUndefined();
    expect(signals.ignoredCount).toBe(Object.keys(facts).length);
  });
});
