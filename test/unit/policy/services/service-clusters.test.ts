import { describe, expect, it } from "vitest";
import { clusterNames, indexClusters } from "../../../../src/policy/services/service-clusters.js";
import { testService } from "../../../support/admission.js";

const upstream = { address: "orders.shop.svc.cluster.local", port: 8080 };
const istio = "outbound|8080||orders.shop.svc.cluster.local";
const edge = { cluster: "edge" };

describe("clusterNames()", () => {
  it("is the service's own name, what Istio makes of its address, and what is listed", () => {
    expect(clusterNames(testService(undefined))).toEqual(["orders"]);
    const clusters = ["orders-blue", "orders"];
    expect(clusterNames(testService(undefined, { upstream, clusters }))).toEqual([
      "orders",
      istio,
      "orders-blue",
    ]);
  });
});

describe("indexClusters()", () => {
  it("leads from clusters to services and back", () => {
    const orders = testService(undefined, { upstream, clusters: ["orders-blue"] });
    const clusters = indexClusters([orders, testService(undefined, { name: "carts" })]);
    for (const name of ["orders", istio, "orders-blue"]) {
      expect(clusters.serviceOf(name, edge)).toBe("orders");
    }
    expect(clusters.serviceOf("carts", edge)).toBe("carts");
    expect(clusters.serviceOf("other", edge)).toBeUndefined();
    expect(clusters.clustersOf("orders", edge)).toEqual(clusterNames(orders));
    expect(clusters.clustersOf("other", edge)).toEqual([]);
    expect(clusters.contested.size).toBe(0);
  });

  it("gives a cluster that two services claim to neither, and says who they are", () => {
    const orders = testService(undefined, { upstream, clusters: ["carts"] });
    const clusters = indexClusters([orders, { ...orders, name: "carts", clusters: [] }]);
    expect(clusters.serviceOf(istio, edge)).toBeUndefined();
    expect(clusters.serviceOf("carts", edge)).toBeUndefined();
    expect(clusters.clustersOf("orders", edge)).toEqual(["orders"]);
    expect(clusters.clustersOf("carts", edge)).toEqual([]);
    expect([...clusters.contested]).toEqual([
      [istio, ["orders", "carts"]],
      ["carts", ["orders", "carts"]],
    ]);
  });

  it("takes subsets of Istio's for the whole, unless another service lists one", () => {
    const v2 = "outbound|8080|v2|orders.shop.svc.cluster.local";
    const canary = testService(undefined, { name: "canary", clusters: [v2] });
    const clusters = indexClusters([testService(undefined, { upstream }), canary]);
    const v1 = "outbound|8080|v1|orders.shop.svc.cluster.local";
    expect(clusters.serviceOf(v1, edge)).toBe("orders");
    expect(clusters.serviceOf(v2, edge)).toBe("canary");
    expect(clusters.serviceOf("outbound|8080|v1|other", edge)).toBeUndefined();
    expect(clusters.serviceOf("outbound|9090|v1|orders.shop.svc.cluster.local", edge)).toBe(
      undefined,
    );
    expect(clusters.serviceOf(`${v1}|more`, edge)).toBeUndefined();
  });

  it("tells the inbound clusters of sidecars apart by their workload", () => {
    const orders = testService(undefined, { upstream, namespace: "shop" });
    const workloadLabels = { app: "basket" };
    const carts = { ...orders, name: "carts", upstream: { address: "b", port: 8080 } };
    const clusters = indexClusters([orders, { ...carts, workloadLabels }]);
    const inbound = "inbound|8080||";
    expect(clusters.serviceOf(inbound, { cluster: "orders.shop" })).toBe("orders");
    expect(clusters.serviceOf(inbound, { cluster: "basket.shop" })).toBe("carts");
    // Anybody may listen on that port.
    expect(clusters.serviceOf(inbound, { cluster: "carts.shop" })).toBeUndefined();
    expect(clusters.clustersOf("orders", { cluster: "orders.shop" })).toEqual([
      "orders",
      istio,
      inbound,
    ]);
    expect(clusters.clustersOf("orders", { cluster: "basket.shop" })).toEqual(["orders", istio]);
    expect(clusters.contested.size).toBe(0);
  });

  it("believes a list that names an inbound cluster, where no other service has it", () => {
    const listed = ["inbound|9000||"];
    const orders = testService(undefined, { clusters: listed, namespace: "shop" });
    const one = indexClusters([orders]);
    expect(one.serviceOf("inbound|9000||", edge)).toBe("orders");
    expect(one.clustersOf("orders", edge)).toEqual(["orders", "inbound|9000||"]);
    const workloadLabels = { app: "carts" };
    const carts = { ...orders, name: "carts", workloadLabels };
    const two = indexClusters([orders, carts]);
    expect(two.serviceOf("inbound|9000||", edge)).toBeUndefined();
    expect(two.serviceOf("inbound|9000||", { cluster: "carts.shop" })).toBe("carts");
    expect(two.contested.size).toBe(0);
    const same = indexClusters([orders, { ...carts, workloadLabels: orders.workloadLabels }]);
    expect(same.serviceOf("inbound|9000||", { cluster: "orders.shop" })).toBeUndefined();
    expect([...same.contested.keys()]).toEqual(["inbound|9000||", "inbound|9000|| in orders.shop"]);
  });
});
