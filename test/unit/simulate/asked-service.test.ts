import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { serviceQuery } from "../../../src/decide/admission/service-query.js";
import { PolicySimulator } from "../../../src/decide/shadow/policy-simulator.js";
import type { DescriptorPart } from "../../../src/policy/services/descriptor-parts.js";
import type { ServicePolicy } from "../../../src/policy/services/service-policy.js";
import type { ServiceDescriptor } from "../../../src/policy/services/service-rate-limit.js";
import {
  AskedServices,
  keptDescriptorsMax,
  keptHostsMax,
  wantedFacts,
} from "../../../src/simulate/asked-service.js";
import { testPolicy } from "../../support/policies.js";
import { propertyRuns } from "../../support/seeds.js";
import { noSwitches } from "../../support/switches.js";

const parts: readonly DescriptorPart[] = [
  { kind: "fixed", key: "plan", value: "free" },
  { kind: "header", key: "a", header: "x-a" },
  { kind: "header", key: "b", header: "x-b" },
  { kind: "header", key: "method", header: ":method" },
  { kind: "remoteAddress", key: "remote_address" },
  { kind: "maskedAddress", key: "network", v4PrefixBits: 8, v6PrefixBits: 16 },
  { kind: "query", key: "q", parameter: "q" },
  {
    kind: "headerMatch",
    key: "b-is-x",
    value: "yes",
    isMatch: true,
    matches: [{ name: "x-b", test: "exact", text: "x" }],
  },
  { kind: "destinationCluster", key: "cluster" },
  { kind: "sourceCluster", key: "source" },
];

const usual = { hits: { kind: "fixed", count: 1 }, isRefund: false, when: "request" } as const;

const threeHeaders = [{ ...usual, parts: parts.slice(1, 4) }];
const sameTogether = [
  { a: "x", b: "xx", method: "GET", path: "", address: "" },
  { a: "xx", b: "x", method: "GET", path: "", address: "" },
];

const descriptors = fc.array(
  fc
    .shuffledSubarray([...parts], { minLength: 1, maxLength: 3 })
    .map((some) => ({ ...usual, parts: some })),
  { minLength: 1, maxLength: 3 },
);

const anyRequest = { timeUs: 0, wasLimited: false, authority: "", address: "", headers: [] };

function serviceOf(asked: readonly ServiceDescriptor[]): Pick<ServicePolicy, "name" | "rateLimit"> {
  return {
    name: "shop",
    rateLimit: { domain: "shop", descriptors: asked, inExtProc: false },
  };
}

/** Values that would be the same if they were only written behind each other. */
const value = fc.constantFrom("", "x", "1 x", "0 ", "1 x1 x", "xx", "0 1 x");

describe("AskedServices", () => {
  const trial = new PolicySimulator({
    policy: testPolicy([]),
    switches: noSwitches,
    digest: (text) => text,
  });

  it("asks what the actions make of each request, whatever came before", () => {
    const request = fc.record({
      a: value,
      b: value,
      method: fc.constantFrom("", "GET"),
      path: fc.constantFrom("", "/", "/?q=1", "/?q=2&q=3"),
      address: fc.constantFrom("", "10.1.2.3", "10.9.9.9", "[2001:db8::1]", "unknown"),
    });
    fc.assert(
      fc.property(descriptors, fc.array(request, { maxLength: 20 }), (asked, requests) => {
        const service = serviceOf(asked);
        const services = new AskedServices({ trial, forAll: service });
        const wanted = wantedFacts([service]);
        for (const { a, b, method, path, address } of requests) {
          const said = new Map([
            ["x-a", a],
            ["x-b", b],
            [":method", method],
            [":path", path],
          ]);
          const headers = wanted.headers.map((name) => said.get(name) ?? "");
          const logged = { timeUs: 0, wasLimited: false, authority: "", address, headers };
          for (const [name, text] of said) if (text === "") said.delete(name);
          const attributes = new Map(address === "" ? [] : [["source.address", address]]);
          const expected = serviceQuery(service, { headers: said, attributes });
          const found = services.asked(logged) ?? [];
          expect(found.flatMap((one) => (one.kind === "asked" ? [one.text] : []))).toEqual(
            expected?.query?.descriptors.map(({ entries }) => {
              return entries.map(({ key, value: text }) => `${key}=${text}`).join(", ");
            }) ?? [],
          );
          expect(found.flatMap((one) => (one.kind === "unknown" ? [one.key] : []))).toEqual(
            expected?.leftOut.flatMap(({ key, why }) => (why === "unknown" ? [key] : [])),
          );
        }
      }),
      { ...propertyRuns(200), examples: [[threeHeaders, sameTogether]] },
    );
  });

  it("keeps so many descriptors of all services together, and makes the others anew", () => {
    const service = serviceOf([
      { ...usual, parts: [{ kind: "header", key: "a", header: "x-a" }] },
      { ...usual, parts: [{ kind: "fixed", key: "plan", value: "free" }] },
    ]);
    const services = new AskedServices({ trial, forAll: service });
    const askedBy = (user: string) => services.asked({ ...anyRequest, headers: [user] })?.[0];
    const first = askedBy("first");
    for (let i = 1; i < keptDescriptorsMax; i += 1) {
      askedBy(`user-${i}`);
      if (i === 1) expect(askedBy("first")).toBe(first);
    }
    expect(services.keptCounts.descriptors).toBeGreaterThan(keptDescriptorsMax / 4);
    expect(services.keptCounts.descriptors).toBeLessThanOrEqual(keptDescriptorsMax);
    const again = askedBy("first");
    expect(again).not.toBe(first);
    expect(again).toEqual(first);
  });

  it("keeps so many hosts, and knows whose the others are", () => {
    const services = new AskedServices({ trial, forAll: serviceOf([]) });
    const asked: unknown[] = [];
    for (let i = 0; i < 2 * keptHostsMax; i += 1) {
      asked.push(services.asked({ ...anyRequest, authority: `host-${i}` }));
      if (i === keptHostsMax / 2) expect(services.keptCounts.hosts).toBe(i + 1);
    }
    expect(asked.filter((one) => !Array.isArray(one) || one.length > 0)).toEqual([]);
    expect(services.keptCounts.hosts).toBeGreaterThan(keptHostsMax / 2);
    expect(services.keptCounts.hosts).toBeLessThanOrEqual(keptHostsMax);
  });
});
