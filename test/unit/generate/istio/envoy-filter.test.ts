import { describe, expect, it } from "vitest";
import { plainTree } from "../../../../src/generate/base/plain-tree.js";
import { firstRoutePatches, routeMergePatch } from "../../../../src/generate/istio/envoy-filter.js";
import { applyEnvoyFilter } from "../../../support/istio-mesh.js";

const gateway = { context: "GATEWAY", port: undefined } as const;

describe("firstRoutePatches()", () => {
  it("leaves routes in their order once Istio has put each of them first", () => {
    const routes = ["a", "b", "c"].map((name) => ({ name }));
    const configPatches = firstRoutePatches(gateway, { name: "x:80" }, routes).map(plainTree);
    const { listener, unused } = applyEnvoyFilter(
      { spec: { configPatches } },
      {
        context: "GATEWAY",
        listenerPort: 8_080,
        hosts: [
          { name: "x:80", cluster: "x" },
          { name: "y:80", cluster: "y" },
        ],
        clusters: [],
      },
    );
    const names = [...JSON.stringify(listener).matchAll(/"name":"(a|b|c|default|x:80|y:80)"/g)];
    expect(names.map(([, name]) => name)).toEqual([
      "x:80",
      "a",
      "b",
      "c",
      "default",
      "y:80",
      "default",
    ]);
    expect(unused).toEqual([]);
  });
});

describe("routeMergePatch()", () => {
  it("acts on routes that lead to a cluster: merged into a redirect it would replace it", () => {
    expect(plainTree(routeMergePatch(gateway, undefined, {}))).toMatchObject({
      match: { context: "GATEWAY", routeConfiguration: { vhost: { route: { action: "ROUTE" } } } },
    });
  });
});
