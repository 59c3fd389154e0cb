import { describe, expect, it } from "vitest";
import { serviceDomains } from "../../../../../src/generate/envoy/base/domains.js";
import type { ServicePolicy } from "../../../../../src/policy/services/service-policy.js";
import { testService } from "../../../../support/admission.js";
import { type TestProxy, testContext } from "../../../../support/envoy-parts.js";

const orders = testService(undefined, { hosts: ["orders.example", "shop.example"] });
const stock = testService(undefined, {
  name: "stock",
  namespace: "shop",
  hosts: [],
  upstream: { address: "Stock.shop.svc", port: 80 },
});

function domainsOf(services: readonly ServicePolicy[], proxy: TestProxy = {}) {
  const { context, problems } = testContext({ services, ...proxy });
  return { domains: serviceDomains(services, context), problems };
}

describe("serviceDomains()", () => {
  it("are the hosts of each service at the edge, or its name", () => {
    expect(domainsOf([orders, stock])).toEqual({
      domains: [["orders.example", "shop.example"], ["stock"]],
      problems: [],
    });
    expect(domainsOf([orders]).domains).toEqual([["orders.example", "shop.example"]]);
  });

  it("are all where there is one service without hosts, and before a sidecar's own", () => {
    expect(domainsOf([stock]).domains).toEqual([["*"]]);
    expect(domainsOf([orders], { role: "sidecar" }).domains).toEqual([["*"]]);
  });

  it("are also the names by which services call each other", () => {
    const calls: TestProxy = { role: "sidecar", side: "outbound" };
    expect(domainsOf([stock], calls).domains).toEqual([["stock", "stock.shop", "stock.shop.svc"]]);
    const numbered = { ...stock, upstream: { address: "10.0.0.1", port: 80 } };
    expect(domainsOf([numbered], calls).domains).toEqual([["stock", "stock.shop"]]);
    const sixth = { ...stock, upstream: { address: "fd00::1", port: 80 } };
    expect(domainsOf([sixth], calls).domains).toEqual([["stock", "stock.shop"]]);
  });

  it("are reported where two services claim one", () => {
    const other = testService(undefined, { name: "other", hosts: ["shop.example"] });
    expect(domainsOf([orders, other]).problems).toMatchObject([
      { id: "HG303", spot: { service: "other", path: ["hosts"] } },
    ]);
  });
});
