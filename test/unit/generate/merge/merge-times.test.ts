import { describe, expect, it } from "vitest";
import type { TreeMap } from "../../../../src/generate/base/document.js";
import { readExisting } from "../../../../src/generate/base/existing-object.js";
import { plainTree } from "../../../../src/generate/base/plain-tree.js";
import { mergeTimes, type ServiceTimes } from "../../../../src/generate/merge/merge-times.js";

const times: TreeMap = { timeout: "5s", retries: { attempts: 2, retryOn: "connect-failure" } };

const orders: ServiceTimes = {
  service: "orders",
  meshHost: "orders.shop.svc.cluster.local",
  gatewayHosts: ["orders.example.com"],
  times,
};

const to = (...hosts: readonly string[]) => ({
  route: hosts.map((host) => ({ destination: { host } })),
});

/** What becomes of routes, the hosts that were told, and what was said. */
const merge = (spec: TreeMap, services: readonly ServiceTimes[] = [orders]) => {
  const metadata = { name: "edge", namespace: "shop" };
  const kind = "VirtualService";
  const text = JSON.stringify({ apiVersion: "networking.istio.io/v1beta1", kind, metadata, spec });
  const { objects } = readExisting([{ file: "with.yaml", text }]);
  const made = mergeTimes(objects, services);
  const [object] = made.objects.map((one) => Object(plainTree(one)).spec);
  return { http: object?.http, hosts: [...made.hosts], problems: made.problems };
};

const edge = { hosts: ["orders.example.com"], gateways: ["istio-system/shop"] };

describe("mergeTimes()", () => {
  it("tells routes that say nothing, and leaves all else of them", () => {
    const route = {
      ...to("orders"),
      rewrite: { uri: "/" },
      headers: { request: { remove: ["a"] } },
    };
    const made = merge({ ...edge, http: [route] });
    expect(made).toEqual({
      http: [{ ...route, ...times }],
      hosts: ["orders.example.com"],
      problems: [],
    });
  });

  it("keeps what a route says, as a whole, and says what differs", () => {
    const route = { ...to("orders"), timeout: "1m", retries: { attempts: 0 } };
    const made = merge({ ...edge, http: [route] });
    expect(made.http).toEqual([route]);
    expect(made.problems).toMatchObject([
      { id: "HG349", spot: { service: "orders", path: ["timeouts"] } },
      { id: "HG349", spot: { service: "orders", path: ["retries"] } },
    ]);
  });

  it("leaves routes elsewhere, redirects and answers", () => {
    const others = [to("assets"), { redirect: { uri: "/" } }, { directResponse: { status: 404 } }];
    const made = merge({ ...edge, http: [...others, to("orders-next", "orders")] });
    expect(made.http).toEqual([...others, { ...to("orders-next", "orders"), ...times }]);
  });

  it.each([
    ["of the mesh", { hosts: ["orders"] }, [orders.meshHost]],
    ["of both", { ...edge, hosts: ["orders", "*.example.com"], gateways: ["mesh", "shop"] }, 2],
    ["of every host", { ...edge, hosts: ["*"] }, ["orders.example.com"]],
    ["of a gateway, for the mesh's host", { ...edge, hosts: ["orders"] }, []],
    ["of another host", { ...edge, hosts: ["carts.example.com"] }, []],
    ["that delegates", { ...edge, http: [{ delegate: { name: "a" } }] }, []],
  ])("knows hosts of a VirtualService %s", (_, spec, hosts) => {
    const made = merge({ http: [to("orders")], ...spec });
    if (typeof hosts === "number") expect(made.hosts.length).toBe(hosts);
    else expect(made.hosts).toEqual(hosts);
    expect(made.http === undefined).toBe(made.hosts.length === 0);
  });

  it("tells routes of one VirtualService to several services what is each one's", () => {
    const carts = { ...orders, service: "carts", meshHost: "carts.shop.svc.cluster.local" };
    const services = [orders, { ...carts, times: { timeout: "1s" } }];
    const made = merge({ ...edge, http: [to("carts"), to("orders")] }, services);
    expect(made.http).toEqual([
      { ...to("carts"), timeout: "1s" },
      { ...to("orders"), ...times },
    ]);
  });
});
