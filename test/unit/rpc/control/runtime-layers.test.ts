import { describe, expect, it } from "vitest";
import type { NodeShare, ShareSnapshot } from "../../../../src/core/feedback/feedback.js";
import { indexClusters } from "../../../../src/policy/services/service-clusters.js";
import type { ServicePolicy } from "../../../../src/policy/services/service-policy.js";
import type { AdaptiveConcurrencyPolicy } from "../../../../src/policy/upstream/adaptive-concurrency.js";
import { defaultBlocks } from "../../../../src/policy/upstream/default-upstream.js";
import type { LocalRateLimitPolicy } from "../../../../src/policy/upstream/local-rate-limit.js";
import {
  type LayerPlan,
  planLayers,
  plannedClustersMax,
  unfixedPins,
} from "../../../../src/rpc/control/layer-plan.js";
import {
  bareLayer,
  isSameLayer,
  type LayerNode,
  layerOf as layerOfNode,
  shareMax,
} from "../../../../src/rpc/control/runtime-layers.js";
import { emptyLayer, type NodeLayer } from "../../../../src/rpc/nodes/layer-ledger.js";
import { testService } from "../../../support/admission.js";
import { reportedService } from "../../../support/control-rig.js";
import { testSnapshot } from "../../../support/share-snapshots.js";

function planOf(...services: readonly ServicePolicy[]): LayerPlan {
  return planLayers(services, indexClusters(services));
}

/** An Envoy that has told of no cluster, unless it is said of which. */
function nodeOf(id: string, divided: ReadonlyMap<string, NodeShare> = new Map()): LayerNode {
  return { id, identity: { cluster: "edge" }, signals: { divideShare: () => divided } };
}

/** By a snapshot that does not age, and its gates. */
function layerOf(node: string | LayerNode, snapshot: ShareSnapshot, plan: LayerPlan): NodeLayer {
  const of = typeof node === "string" ? nodeOf(node) : node;
  return layerOfNode(of, { snapshot, gates: new Map(), untilMs: undefined }, plan);
}

const fixedRtt: AdaptiveConcurrencyPolicy = {
  limitMax: 1_000,
  limitMin: 3,
  percentile: 90,
  updateMs: 100,
  minRtt: { kind: "fixed", ms: 20, bufferPercent: 25 },
};

const pinned = { feedback: ["adaptiveConcurrency"] } as const;

function pinnedService(name: string): ServicePolicy {
  return reportedService(name, { adaptiveConcurrency: fixedRtt }, pinned);
}

const retries = {
  retriesMax: 2,
  on: ["reset"],
  perTryMs: undefined,
  perTryIdleMs: undefined,
  hedging: undefined,
  retriableStatusCodes: [],
  backOffBaseMs: 25,
  backOffMsMax: 250,
  retryAfterMsMax: undefined,
} as const;

const orders = planOf(reportedService("orders"));
const minPin = "adaptive_concurrency.gradient_controller.min_concurrency_limit";
const maxPin = "adaptive_concurrency.gradient_controller.max_concurrency_limit";

describe("layerOf()", () => {
  it("bounds what is in work and what waits, by the share of this Envoy", () => {
    const snapshot = testSnapshot(7, { orders: { shares: { "edge-1": 12, "edge-2": 3 } } }, 4);
    const layer = layerOf("edge-1", snapshot, orders);
    expect(layer.version).toBe("4.7");
    expect(Object.fromEntries(layer.values)).toEqual({
      "circuit_breakers.orders.default.max_requests": 12,
      "circuit_breakers.orders.default.max_pending_requests": 12,
    });
    expect([...layer.shares]).toEqual([["orders", 12]]);
  });

  it("gives HIGH its own part, and counts both", () => {
    const shares = { "edge-1": { default: 8, high: 2 } };
    const layer = layerOf("edge-1", testSnapshot(1, { orders: { shares } }), orders);
    expect(Object.fromEntries(layer.values)).toEqual({
      "circuit_breakers.orders.default.max_requests": 8,
      "circuit_breakers.orders.default.max_pending_requests": 8,
      "circuit_breakers.orders.high.max_requests": 2,
      "circuit_breakers.orders.high.max_pending_requests": 2,
    });
    expect(layer.shares.get("orders")).toBe(10);
  });

  it("names the cluster as Istio does, too", () => {
    const upstream = { address: "orders.shop.svc.cluster.local", port: 80 };
    const plan = planOf(reportedService("orders", { upstream }));
    const layer = layerOf("edge-1", testSnapshot(1, { orders: { shares: { "edge-1": 5 } } }), plan);
    const cluster = "outbound|80||orders.shop.svc.cluster.local";
    expect(layer.values.get(`circuit_breakers.${cluster}.default.max_requests`)).toBe(5);
  });

  it.each([
    ["nothing", 0],
    ["less", -1],
    ["a fraction", 1.5],
    ["no number", Number.NaN],
    ["more than 32 bits", shareMax + 1],
  ])("leaves out a share of %s: Envoy would take it", (_, share) => {
    const layer = layerOf(
      "edge-1",
      testSnapshot(1, { orders: { shares: { "edge-1": share } } }),
      orders,
    );
    expect(layer.values.size).toBe(0);
    expect(layer.shares.size).toBe(0);
    const high = { "edge-1": { default: 5, high: share === 0 ? -2 : share } };
    expect(
      layerOf("edge-1", testSnapshot(1, { orders: { shares: high } }), orders).values.size,
    ).toBe(0);
  });

  it("leaves out what is of other Envoys, of other services, or of no use to Envoy", () => {
    const deaf = reportedService("deaf", {}, { feedback: [] });
    const plan = planOf(reportedService("orders"), deaf);
    const snapshot = testSnapshot(1, {
      orders: { shares: { "edge-2": 3 } },
      deaf: { shares: { "edge-1": 3 } },
      unknown: { shares: { "edge-1": 3 } },
    });
    const layer = layerOf("edge-1", snapshot, plan);
    expect(layer.values.size).toBe(0);
    expect(layer.shares.size).toBe(0);
  });

  it("pins the one service that asks for it, and none of two", () => {
    const plan = planOf(pinnedService("orders"));
    const snapshot = testSnapshot(1, {
      orders: { shares: { "edge-1": { default: 6, high: 1 } } },
      carts: { shares: { "edge-1": 9 } },
    });
    expect(Object.fromEntries(layerOf("edge-1", snapshot, plan).values)).toEqual({
      [minPin]: 7,
      [maxPin]: 7,
    });
    expect(plan.contestedPins).toEqual([]);
    const both = planOf(pinnedService("orders"), pinnedService("carts"));
    expect(layerOf("edge-1", snapshot, both).values.size).toBe(0);
    expect(layerOf("edge-1", snapshot, both).shares.size).toBe(0);
    expect(both.contestedPins).toEqual(["orders", "carts"]);
  });

  it.each(["sampled", "unsaid"] as const)("sends no pin where the minimum is %s", (minRtt) => {
    const sampled = {
      kind: "sampled",
      everyMs: 60_000,
      requestCount: 50,
      jitterPercent: 15,
      bufferPercent: 25,
    } as const;
    const adaptiveConcurrency = minRtt === "unsaid" ? undefined : { ...fixedRtt, minRtt: sampled };
    const plan = planOf(
      reportedService("orders", { adaptiveConcurrency }, pinned),
      pinnedService("a"),
    );
    const snapshot = testSnapshot(1, { orders: { shares: { "edge-1": 6 } } });
    expect(layerOf("edge-1", snapshot, plan)).toMatchObject({
      values: new Map(),
      shares: new Map(),
    });
    expect(unfixedPins(plan)).toEqual(["orders"]);
    expect(plan.contestedPins).toEqual([]);
  });

  it("divides a share among the clusters that an Envoy has, and counts what it let go", () => {
    const upstream = { address: "orders.shop", port: 80 };
    const plan = planOf(reportedService("orders", { upstream }));
    const divided = new Map([
      ["outbound|80|v1|orders.shop", { default: 9, high: 1 }],
      ["outbound|80|v2|orders.shop", { default: 2, high: 1 }],
    ]);
    const shares = { "edge-1": { default: 11, high: 1 } };
    const snapshot = testSnapshot(1, { orders: { shares } });
    const { values, shares: held } = layerOf(nodeOf("edge-1", divided), snapshot, plan);
    const max = (cluster: string, priority: string) =>
      values.get(`circuit_breakers.${cluster}.${priority}.max_requests`);
    expect(max("outbound|80|v1|orders.shop", "default")).toBe(9);
    expect(max("outbound|80|v2|orders.shop", "default")).toBe(2);
    expect(max("outbound|80|v2|orders.shop", "high")).toBe(1);
    // Of these two it has told nothing: it has none of them, or has just got it.
    expect(max("outbound|80||orders.shop", "default")).toBe(11);
    expect(max("orders", "high")).toBe(1);
    expect(held.get("orders")).toBe(13);
  });

  it.each([
    { share: 50, least: 3 },
    { share: 10, least: 2 },
    { share: 4, least: 1 },
  ])("lets the retries of a budget fall to $least with a share of $share", ({ share, least }) => {
    const plan = planOf(reportedService("orders", { retries }));
    const snapshot = testSnapshot(1, { orders: { shares: { "edge-1": share } } });
    const { values } = layerOf("edge-1", snapshot, plan);
    const budget = "circuit_breakers.orders.default.retry_budget";
    expect(values.get(`${budget}.budget_percent`)).toBe(16.6);
    expect(values.get(`${budget}.min_retry_concurrency`)).toBe(least);
    expect(values.has("circuit_breakers.orders.default.max_retries")).toBe(false);
  });

  it("bounds the number of retries where there is no budget", () => {
    const circuitBreakers = { ...defaultBlocks.circuitBreakers, retryBudget: undefined };
    const plan = planOf(reportedService("orders", { retries, circuitBreakers }));
    const retriesAt = (share: number) => {
      const snapshot = testSnapshot(1, { orders: { shares: { "edge-1": share } } });
      return layerOf("edge-1", snapshot, plan).values.get(
        "circuit_breakers.orders.default.max_retries",
      );
    };
    expect([50, 10, 1].map(retriesAt)).toEqual([3, 2, 1]);
  });

  it("switches off what is only for the time without Headgate, of any service", () => {
    const localRateLimit = { requests: 5, perMs: 1_000, burst: 5 };
    const quiet = { feedback: [] } as const;
    const limited = (name: string, when: LocalRateLimitPolicy["when"]) =>
      reportedService(name, { localRateLimit: { ...localRateLimit, when } }, quiet);
    const admissionControl = {
      aggression: 1.5,
      successRateThresholdPercent: 95,
      samplingWindowMs: 30_000,
      requestsPerSecondMin: 5,
      rejectPercentMax: 80,
      when: "withoutHeadgate",
    } as const;
    const plan = planOf(
      limited("carts", "withoutHeadgate"),
      limited("always", "always"),
      reportedService("orders", { admissionControl }, quiet),
    );
    const live = {
      "headgate.local_rate_limit.carts": 0,
      "headgate.admission_control.orders": false,
    };
    expect(plan.needsSnapshot).toBe(false);
    expect(Object.fromEntries(bareLayer(plan).values)).toEqual(live);
    const layer = layerOf("edge-1", testSnapshot(1, {}), plan);
    expect(Object.fromEntries(layer.values)).toEqual(live);
    expect(bareLayer(orders)).toBe(emptyLayer);
  });

  it("answers the closed gate of a service that has no limit for Envoys", () => {
    const gate = { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 };
    const { admission } = testService({ gate });
    const plan = planOf(reportedService("orders", { admission }, { feedback: [] }));
    expect(plan.needsSnapshot).toBe(true);
    const at = (state: "open" | "limiting" | "closed") =>
      layerOfNode(
        nodeOf("edge-1"),
        { snapshot: testSnapshot(1, {}), gates: new Map([["orders", state]]), untilMs: 7 },
        plan,
      );
    expect([...at("closed").values.values()]).toEqual([100, 100, 100]);
    expect(at("closed").untilMs).toBe(7);
    expect(at("limiting").values.size).toBe(0);
    expect(at("open").values.size).toBe(0);
  });

  it("lets Envoy refuse all but critical requests while a gate is closed", () => {
    const closed = testSnapshot(1, { orders: { shares: {}, gate: "closed" } });
    expect(Object.fromEntries(layerOf("edge-1", closed, orders).values)).toEqual({
      "headgate.shed.orders.high": 100,
      "headgate.shed.orders.normal": 100,
      "headgate.shed.orders.low": 100,
    });
    const limiting = testSnapshot(1, { orders: { shares: {}, gate: "limiting" } });
    expect(layerOf("edge-1", limiting, orders).values.size).toBe(0);
  });
});

describe("planLayers()", () => {
  it("keeps the keys of so many clusters made, and makes those of others each time", () => {
    const plan = planOf(reportedService("orders"));
    for (let i = 0; i < plannedClustersMax; i += 1) plan.keysOf(`c${i}`);
    expect(plan.keysOf("c0")).toBe(plan.keysOf("c0"));
    expect(plan.keysOf("more")).not.toBe(plan.keysOf("more"));
    expect(plan.keysOf("more")).toEqual(plan.keysOf("more"));
  });
});

describe("isSameLayer()", () => {
  it("looks at what an Envoy is told, and not at the version", () => {
    const layer = (version: number, share: number) =>
      layerOf("edge-1", testSnapshot(version, { orders: { shares: { "edge-1": share } } }), orders);
    expect(isSameLayer(layer(1, 5), layer(2, 5))).toBe(true);
    expect(isSameLayer(layer(1, 5), layer(1, 6))).toBe(false);
    expect(isSameLayer(layer(1, 5), emptyLayer)).toBe(false);
  });
});
