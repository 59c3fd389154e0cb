import { describe, expect, it } from "vitest";
import { defaultProxies } from "../../../../src/policy/proxies/default-proxies.js";
import {
  configuredRequestsMax,
  configuredShare,
  hasCriticalRoutes,
  requestsThresholdMax,
} from "../../../../src/policy/services/configured-share.js";
import type { ServicePolicy } from "../../../../src/policy/services/service-policy.js";
import { defaultBlocks } from "../../../../src/policy/upstream/default-upstream.js";
import { testService } from "../../../support/admission.js";
import { reportedService } from "../../../support/control-rig.js";

const proxies = (expectedCount: number) => ({ ...defaultProxies, expectedCount });

/** A law up to so many, and what admission holds. */
function limited(max: number, maxInFlight?: number): ServicePolicy {
  const settings = { law: "fixed", limits: { initial: 1, min: 1, max } } as const;
  const admission = testService({ maxInFlight }).admission;
  return reportedService("orders", maxInFlight === undefined ? {} : { admission }, { settings });
}

function critical(fields: Partial<ServicePolicy["priority"]>): ServicePolicy {
  const service = reportedService("orders");
  return { ...service, priority: { ...service.priority, ...fields } };
}

describe("configuredRequestsMax()", () => {
  it.each([
    { what: "a part of the law's largest limit", of: limited(1_000), count: 8, part: 125 },
    { what: "a part that is rounded up", of: limited(1_000), count: 3, part: 334 },
    { what: "one at least", of: limited(1), count: 50, part: 1 },
    { what: "no more than admission holds", of: limited(1_000, 300), count: 8, part: 38 },
    { what: "Envoy's default without a law", of: testService(undefined), count: 8, part: 1_024 },
    { what: "all of what permits hold", of: testService({ maxInFlight: 30 }), count: 8, part: 30 },
    { what: "what 32 bits hold", of: limited(2 ** 40), count: 1, part: requestsThresholdMax },
  ])("is $what", ({ of, count, part }) => {
    expect(configuredRequestsMax(of, proxies(count))).toBe(part);
  });

  it("is the number that the policy has", () => {
    const circuitBreakers = { ...defaultBlocks.circuitBreakers, requestsMax: 77 };
    const service = { ...limited(1_000), circuitBreakers };
    expect(configuredRequestsMax(service, proxies(8))).toBe(77);
  });
});

describe("hasCriticalRoutes()", () => {
  it.each([
    { what: "a rule", fields: { rules: [{ when: "true", is: "critical" }] }, is: true },
    { what: "another rule", fields: { rules: [{ when: "true", is: "low" }] }, is: false },
    { what: "the default", fields: { default: "critical" }, is: true },
    {
      what: "a header of everybody's",
      fields: { trust: { anyone: true, sources: [], principals: [] } },
      is: true,
    },
    { what: "paths of authentication", fields: { authPaths: ["/login"] }, is: false },
  ] as const)("is $is for $what", ({ fields, is }) => {
    expect(hasCriticalRoutes(critical(fields))).toBe(is);
  });
});

describe("configuredShare()", () => {
  it("counts both priorities where routes run at both", () => {
    expect(configuredShare(reportedService("orders"), proxies(4))).toBe(250);
    expect(configuredShare(critical({ default: "critical" }), proxies(4))).toBe(500);
  });
});
