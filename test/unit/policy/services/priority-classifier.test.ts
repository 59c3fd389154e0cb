import { describe, expect, it } from "vitest";
import type { ScalarValue } from "../../../../src/core/admission/exchange-messages.js";
import type { RequestFacts } from "../../../../src/policy/cel/request-facts.js";
import { createPriorityClassifier } from "../../../../src/policy/services/priority-classifier.js";
import type {
  PriorityPolicy,
  TrustPolicy,
} from "../../../../src/policy/services/service-priority.js";

const nobody: TrustPolicy = { anyone: false, sources: [], principals: [] };

function policy(parts: Partial<PriorityPolicy> = {}): PriorityPolicy {
  return {
    header: "x-request-priority",
    default: "normal",
    rules: [],
    bypassPaths: ["/healthz"],
    authPaths: ["/login/*"],
    trust: nobody,
    ...parts,
  };
}

function facts(
  headers: Readonly<Record<string, string>>,
  attributes: Readonly<Record<string, ScalarValue>> = {},
): RequestFacts {
  return {
    headers: new Map(Object.entries(headers)),
    attributes: new Map(Object.entries(attributes)),
  };
}

/** The class of a request that says it is critical, from somewhere. */
function classOf(trust: Partial<TrustPolicy>, attributes: Readonly<Record<string, ScalarValue>>) {
  const classifier = createPriorityClassifier(policy({ trust: { ...nobody, ...trust } }));
  return classifier.classify(
    facts({ ":path": "/a", "x-request-priority": "critical" }, attributes),
  );
}

describe("createPriorityClassifier()", () => {
  const rules = [
    { when: 'request.path.startsWith("/checkout")', is: "critical" },
    { when: 'request.headers["x-plan"] == "free"', is: "low" },
    { when: 'request.path.startsWith("/check")', is: "high" },
  ] as const;
  const trust = { ...nobody, anyone: true };
  const classifier = createPriorityClassifier(policy({ rules, trust }));

  it.each([
    ["a health path, uncounted", { ":path": "/healthz?full", "x-plan": "free" }, "bypass"],
    ["the first rule that holds", { ":path": "/checkout", "x-plan": "free" }, "critical"],
    ["a later rule", { ":path": "/checklist" }, "high"],
    [
      "a rule before the header",
      { ":path": "/a", "x-plan": "free", "x-request-priority": "high" },
      "low",
    ],
    ["the header", { ":path": "/login", "x-request-priority": "low" }, "low"],
    ["the header in any case", { ":path": "/a", "x-request-priority": "Critical" }, "critical"],
    ["a path of authentication", { ":path": "/login/oauth?x=1" }, "critical"],
    ["a path that only looks like it", { ":path": "/login/../a" }, "normal"],
    ["the usual one without a path", {}, "normal"],
    ["the usual one for another word", { ":path": "/a", "x-request-priority": "urgent" }, "normal"],
    ["the usual one for two values", { ":path": "/a", "x-request-priority": "high,low" }, "normal"],
  ])("finds %s", (_, headers, wanted) => {
    expect(classifier.classify(facts(headers))).toBe(wanted);
  });

  it("asks for what its rules and its trust read, and no more", () => {
    expect([...classifier.headerNames].sort()).toEqual([":path", "x-plan", "x-request-priority"]);
    expect([...classifier.attributeNames]).toEqual([]);
    const names = createPriorityClassifier(
      policy({ rules: [{ when: "has(request.protocol)", is: "low" }] }),
    );
    expect([...names.headerNames]).toEqual([":path"]);
    expect([...names.attributeNames]).toEqual(["request.protocol"]);
    const both = { anyone: false, sources: ["::1"], principals: ["a"] };
    expect([...createPriorityClassifier(policy({ trust: both })).attributeNames]).toEqual([
      "source.address",
      "connection.uri_san_peer_certificate",
    ]);
  });

  it("believes nobody's header where the policy names nobody", () => {
    expect(classOf({}, { "source.address": "127.0.0.1:1" })).toBe("normal");
  });

  it.each([
    [["10.0.0.0/8"], "10.1.2.3:4567", "critical"],
    [["10.0.0.0/8"], "11.1.2.3:4567", "normal"],
    [["10.0.0.0/8"], "[::ffff:10.1.2.3]:4567", "critical"],
    [["::1", "10.0.0.0/8"], "10.1.2.3:4567", "critical"],
    [["fd00::/8"], "[fd12::1]:4567", "critical"],
    [["fd00::/8"], "10.1.2.3:4567", "normal"],
    [["0.0.0.0/0"], "/run/envoy.sock", "normal"],
    [["0.0.0.0/0"], undefined, "normal"],
    [["0.0.0.0/0"], 5, "normal"],
  ])("believes those in %s: %s is %s", (sources, address, wanted) => {
    expect(classOf({ sources }, address === undefined ? {} : { "source.address": address })).toBe(
      wanted,
    );
  });

  it.each([
    [["spiffe://shop/web"], "spiffe://shop/web", "critical"],
    [["spiffe://shop/web"], "spiffe://shop/web2", "normal"],
    [["spiffe://shop/*"], "spiffe://shop/web", "critical"],
    [["spiffe://shop/*"], "spiffe://shopping/web", "normal"],
    [["*"], "", "normal"],
    [["*"], undefined, "normal"],
  ])("believes those named %s: %s is %s", (principals, principal, wanted) => {
    const attributes =
      principal === undefined ? {} : { "connection.uri_san_peer_certificate": principal };
    expect(classOf({ principals }, attributes)).toBe(wanted);
  });

  it("believes either of a source and a principal", () => {
    const trust = { sources: ["10.0.0.0/8"], principals: ["spiffe://shop/*"] };
    const named = { "connection.uri_san_peer_certificate": "spiffe://shop/web" };
    expect(classOf(trust, { ...named, "source.address": "11.0.0.1:1" })).toBe("critical");
    expect(classOf(trust, { "source.address": "10.0.0.1:1" })).toBe("critical");
    expect(classOf(trust, {})).toBe("normal");
  });
});
