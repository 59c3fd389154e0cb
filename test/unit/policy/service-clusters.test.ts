import { describe, expect, it } from "vitest";
import { clusterNames, indexClusters } from "../../../src/policy/service-clusters.js";
import { testService } from "../../support/admission.js";

const upstream = { address: "orders.shop.svc.cluster.local", port: 8080 };

describe("clusterNames()", () => {
  it("is the service's own name, and what Istio makes of its address", () => {
    expect(clusterNames(testService(undefined))).toEqual(["orders"]);
    expect(clusterNames(testService(undefined, { upstream }))).toEqual([
      "orders",
      "outbound|8080||orders.shop.svc.cluster.local",
    ]);
  });
});

describe("indexClusters()", () => {
  it("leads from clusters to services and back", () => {
    const orders = testService(undefined, { upstream });
    const clusters = indexClusters([orders, testService(undefined, { name: "carts" })]);
    expect(clusters.serviceOf("orders")).toBe("orders");
    expect(clusters.serviceOf("outbound|8080||orders.shop.svc.cluster.local")).toBe("orders");
    expect(clusters.serviceOf("carts")).toBe("carts");
    expect(clusters.serviceOf("other")).toBeUndefined();
    expect(clusters.clustersOf("orders")).toEqual(clusterNames(orders));
    expect(clusters.clustersOf("other")).toEqual([]);
    expect(clusters.contested.size).toBe(0);
  });

  it("gives a cluster that two services claim to neither, and says who they are", () => {
    const orders = testService(undefined, { upstream });
    const clusters = indexClusters([orders, { ...orders, name: "carts" }]);
    const shared = "outbound|8080||orders.shop.svc.cluster.local";
    expect(clusters.serviceOf(shared)).toBeUndefined();
    expect(clusters.clustersOf("orders")).toEqual(["orders"]);
    expect(clusters.clustersOf("carts")).toEqual(["carts"]);
    expect([...clusters.contested]).toEqual([[shared, ["orders", "carts"]]]);
  });
});
