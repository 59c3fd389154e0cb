import { describe, expect, it } from "vitest";
import { indexClusters } from "../../../src/policy/service-clusters.js";
import type { ServicePolicy } from "../../../src/policy/service-policy.js";
import { emptyLayer } from "../../../src/rpc/layer-ledger.js";
import {
  contestedPins,
  isSameLayer,
  type LayerPlan,
  layerOf,
  planLayers,
  shareMax,
} from "../../../src/rpc/runtime-layers.js";
import { toldService } from "../../support/control-rig.js";
import { testSheet } from "../../support/share-sheets.js";

function planOf(...services: readonly ServicePolicy[]): LayerPlan {
  return planLayers(services, indexClusters(services));
}

const pinned = { feedback: ["adaptiveConcurrency"] } as const;
const orders = planOf(toldService("orders"));
const minPin = "adaptive_concurrency.gradient_controller.min_concurrency_limit";
const maxPin = "adaptive_concurrency.gradient_controller.max_concurrency_limit";

describe("layerOf()", () => {
  it("is empty without a sheet", () => {
    expect(layerOf("edge-1", undefined, orders)).toBe(emptyLayer);
  });

  it("bounds what is in work and what waits, by the share of this Envoy", () => {
    const sheet = testSheet(7, { orders: { shares: { "edge-1": 12, "edge-2": 3 } } }, 4);
    const layer = layerOf("edge-1", sheet, orders);
    expect(layer.version).toBe("4.7");
    expect(Object.fromEntries(layer.values)).toEqual({
      "circuit_breakers.orders.default.max_requests": 12,
      "circuit_breakers.orders.default.max_pending_requests": 12,
    });
    expect([...layer.shares]).toEqual([["orders", 12]]);
  });

  it("gives HIGH its own part, and counts both", () => {
    const shares = { "edge-1": { default: 8, high: 2 } };
    const layer = layerOf("edge-1", testSheet(1, { orders: { shares } }), orders);
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
    const plan = planOf(toldService("orders", { upstream }));
    const layer = layerOf("edge-1", testSheet(1, { orders: { shares: { "edge-1": 5 } } }), plan);
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
      testSheet(1, { orders: { shares: { "edge-1": share } } }),
      orders,
    );
    expect(layer.values.size).toBe(0);
    expect(layer.shares.size).toBe(0);
    const high = { "edge-1": { default: 5, high: share === 0 ? -2 : share } };
    expect(layerOf("edge-1", testSheet(1, { orders: { shares: high } }), orders).values.size).toBe(
      0,
    );
  });

  it("leaves out what is of other Envoys, of other services, or of no use to Envoy", () => {
    const deaf = toldService("deaf", {}, { feedback: [] });
    const plan = planOf(toldService("orders"), deaf);
    const sheet = testSheet(1, {
      orders: { shares: { "edge-2": 3 } },
      deaf: { shares: { "edge-1": 3 } },
      unknown: { shares: { "edge-1": 3 } },
    });
    const layer = layerOf("edge-1", sheet, plan);
    expect(layer.values.size).toBe(0);
    expect(layer.shares.size).toBe(0);
  });

  it("pins the one service that asks for it, and none of two", () => {
    const plan = planOf(toldService("orders", {}, pinned));
    const sheet = testSheet(1, {
      orders: { shares: { "edge-1": { default: 6, high: 1 } } },
      carts: { shares: { "edge-1": 9 } },
    });
    expect(Object.fromEntries(layerOf("edge-1", sheet, plan).values)).toEqual({
      [minPin]: 7,
      [maxPin]: 7,
    });
    expect(contestedPins(plan)).toEqual([]);
    const both = planOf(toldService("orders", {}, pinned), toldService("carts", {}, pinned));
    expect(layerOf("edge-1", sheet, both).values.size).toBe(0);
    expect(layerOf("edge-1", sheet, both).shares.size).toBe(0);
    expect(contestedPins(both)).toEqual(["orders", "carts"]);
  });

  it("lets Envoy refuse all but critical requests while a gate is closed", () => {
    const closed = testSheet(1, { orders: { shares: {}, gate: "closed" } });
    expect(Object.fromEntries(layerOf("edge-1", closed, orders).values)).toEqual({
      "headgate.shed.orders.high": 100,
      "headgate.shed.orders.normal": 100,
      "headgate.shed.orders.low": 100,
    });
    const limiting = testSheet(1, { orders: { shares: {}, gate: "limiting" } });
    expect(layerOf("edge-1", limiting, orders).values.size).toBe(0);
  });
});

describe("isSameLayer()", () => {
  it("looks at what an Envoy is told, and not at the version", () => {
    const layer = (version: number, share: number) =>
      layerOf("edge-1", testSheet(version, { orders: { shares: { "edge-1": share } } }), orders);
    expect(isSameLayer(layer(1, 5), layer(2, 5))).toBe(true);
    expect(isSameLayer(layer(1, 5), layer(1, 6))).toBe(false);
    expect(isSameLayer(layer(1, 5), emptyLayer)).toBe(false);
  });
});
