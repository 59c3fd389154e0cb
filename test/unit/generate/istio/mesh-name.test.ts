import { describe, expect, it } from "vitest";
import {
  gatewayVirtualHosts,
  inboundCluster,
  isMeshHost,
  meshName,
  outboundVirtualHost,
} from "../../../../src/generate/istio/mesh-name.js";
import type { ServicePolicy } from "../../../../src/policy/services/service-policy.js";
import { policyOf } from "../../../support/generated.js";
import { policyOf as textOf } from "../../../support/service-texts.js";

function service(text: string): ServicePolicy {
  const policy = policyOf([{ file: "a.yaml", text: textOf(text) }]);
  const [first] = policy.services;
  if (first === undefined) throw new Error("the policy has no service");
  return first;
}

const orders = service(
  "{name: orders, hosts: [a.example.com, b.example.com], clusters: ['inbound|9090||'], " +
    "upstream: {address: orders.shop.svc.cluster.local, port: 8080}}",
);

describe("isMeshHost()", () => {
  it.each(["orders.shop.svc.cluster.local", "api.partner.example", "orders.shop"])(
    "takes %s",
    (text) => expect(isMeshHost(text)).toBe(true),
  );

  it.each(["orders", "orders.shop.svc", "10.0.0.1", "::1", ""])("refuses '%s'", (text) => {
    expect(isMeshHost(text)).toBe(false);
  });
});

describe("meshName()", () => {
  it("is what virtual hosts of callers are called by", () => {
    const mesh = meshName(orders);
    expect(mesh && outboundVirtualHost(mesh)).toBe("orders.shop.svc.cluster.local:8080");
  });

  it("is undefined for a service whose host the policy does not have", () => {
    expect(meshName(service("{name: orders}"))).toBeUndefined();
    expect(
      meshName(service("{name: orders, upstream: {address: 10.0.0.1, port: 80}}")),
    ).toBeUndefined();
  });
});

describe("inboundCluster()", () => {
  it("is the one that the policy names", () => {
    expect(inboundCluster(orders)).toBe("inbound|9090||");
    expect(inboundCluster(service("{name: orders}"))).toBeUndefined();
  });
});

describe("gatewayVirtualHosts()", () => {
  it("are the hosts on the usual ports", () => {
    expect(gatewayVirtualHosts(orders)).toEqual([
      "a.example.com:80",
      "a.example.com:443",
      "b.example.com:80",
      "b.example.com:443",
    ]);
  });
});
