import { describe, expect, it } from "vitest";
import type { Priority } from "../../../../../src/core/admission/priority.js";
import { routeMatch } from "../../../../../src/generate/envoy/http/route-match.js";
import { virtualHost } from "../../../../../src/generate/envoy/http/virtual-host.js";
import type { ServicePolicy } from "../../../../../src/policy/services/service-policy.js";
import { defaultBlocks } from "../../../../../src/policy/upstream/default-upstream.js";
import { testService } from "../../../../support/admission.js";
import {
  apiProblems,
  plain,
  type TestProxy,
  testContext,
} from "../../../../support/envoy-parts.js";

const place = { domains: ["*"], filters: ["envoy.filters.http.ext_proc"] };
const usual = testService(undefined).priority;
const quiet = { ...usual, bypassPaths: [], trust: { ...usual.trust, anyone: false } };
const gate = { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 };

interface Route {
  readonly name: string;
  readonly match: Readonly<Record<string, unknown>>;
  readonly route?: { readonly cluster: string; readonly priority?: string };
  readonly direct_response?: { readonly status: number };
  readonly typed_per_filter_config?: Readonly<Record<string, unknown>>;
}

interface Host {
  readonly routes: readonly Route[];
  readonly retry_policy?: unknown;
  readonly typed_per_filter_config?: Readonly<Record<string, unknown>>;
}

function hostOf(service: ServicePolicy, proxy: TestProxy = {}): Host {
  const { context } = testContext({ services: [service], ...proxy });
  const tree = virtualHost(service, context, place);
  expect(apiProblems("envoy.config.route.v3.VirtualHost", tree)).toEqual([]);
  return JSON.parse(JSON.stringify(plain(tree))) as Host;
}

function namesOf({ routes }: Host): readonly string[] {
  return routes.map(({ name, route }) => (route?.priority === "HIGH" ? `${name} HIGH` : name));
}

const rule = (is: Priority, path: string) => ({ when: `request.path.startsWith("${path}")`, is });

describe("virtualHost()", () => {
  it("has one route for a service that tells no classes apart", () => {
    const host = hostOf(testService(undefined, { priority: { ...quiet, authPaths: ["/login"] } }));
    expect(namesOf(host)).toEqual(["orders-rest"]);
  });

  it("bypasses what is asked about otherwise, with all filters off", () => {
    const host = hostOf(
      testService({ maxInFlight: 1 }, { priority: { ...quiet, bypassPaths: ["/a"] } }),
    );
    expect(namesOf(host)).toEqual(["orders-bypass-1 HIGH", "orders-rest"]);
    expect(host.routes[0]?.typed_per_filter_config).toEqual({
      "envoy.filters.http.ext_proc": {
        "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
        disabled: true,
      },
    });
    expect(host.typed_per_filter_config).toHaveProperty(["envoy.filters.http.ext_proc"]);
  });

  it("gives critical requests a threshold of their own, and others routes before them only", () => {
    const rules = [rule("low", "/a"), rule("critical", "/b"), rule("high", "/c")];
    const host = hostOf(testService(undefined, { priority: { ...quiet, rules } }));
    expect(namesOf(host)).toEqual(["orders-rule-1", "orders-rule-2 HIGH", "orders-rest"]);
  });

  it("lets Headgate refuse each class but the critical one, where there is a gate", () => {
    const rules = [rule("low", "/a"), rule("critical", "/b")];
    const host = hostOf(testService({ gate }, { priority: { ...quiet, rules } }));
    expect(namesOf(host)).toEqual([
      "orders-rule-1-shed",
      "orders-rule-1",
      "orders-rule-2 HIGH",
      "orders-rest-shed",
      "orders-rest",
    ]);
    expect(host.routes[0]).toMatchObject({
      match: {
        prefix: "/a",
        runtime_fraction: {
          default_value: { numerator: 0, denominator: "HUNDRED" },
          runtime_key: "headgate.shed.orders.low",
        },
      },
      direct_response: { status: 503 },
      typed_per_filter_config: { "envoy.filters.http.ext_proc": { disabled: true } },
    });
  });

  it("leaves what some callers may state to Headgate", () => {
    const trust = { anyone: false, sources: ["10.0.0.0/8"], principals: [] };
    const host = hostOf(testService({ gate }, { priority: { ...quiet, trust } }));
    expect(namesOf(host)).toEqual(["orders-rest-shed", "orders-rest"]);
    expect(host.routes[0]?.match["headers"]).toEqual([
      { name: "x-request-priority", present_match: true, invert_match: true },
    ]);
  });

  it("holds retries, and refuses by itself, where the service's limits are held", () => {
    const fields = { priority: quiet, retries: defaultBlocks.retries } as const;
    const outbound = testService({ gate }, { ...fields, direction: "outbound" });
    const own = hostOf(outbound, { role: "sidecar" });
    expect([namesOf(own), own.retry_policy]).toEqual([["orders-rest"], undefined]);
    expect(own.routes[0]?.route?.cluster).toBe("local_orders");
    expect(own.typed_per_filter_config).toBeDefined();
    const callers = hostOf(outbound, { role: "sidecar", side: "outbound" });
    expect(namesOf(callers)).toEqual(["orders-rest-shed", "orders-rest"]);
    expect(callers.retry_policy).toBeDefined();
    // The service's own sidecar asks: two would count each request twice.
    expect(callers.typed_per_filter_config).toBeUndefined();
  });
});

describe("routeMatch()", () => {
  const path = { kind: "header", name: ":path" } as const;
  const urlPath = { kind: "urlPath" } as const;

  it.each([
    [[{ fact: urlPath, test: "exact", text: "/a" }], { path: "/a" }],
    [[{ fact: path, test: "prefix", text: "/a" }], { prefix: "/a" }],
    [
      [{ fact: path, test: "prefix", text: "/a?b" }],
      { prefix: "/", headers: [{ name: ":path", string_match: { prefix: "/a?b" } }] },
    ],
    [
      [
        { fact: urlPath, test: "prefix", text: "/a" },
        { fact: urlPath, test: "prefix", text: "/a/b" },
      ],
      { prefix: "/a", headers: [{ name: ":path", string_match: { prefix: "/a/b" } }] },
    ],
    [
      [{ fact: { kind: "header", name: "x-a" }, test: "present", text: "" }],
      { prefix: "/", headers: [{ name: "x-a", present_match: true }] },
    ],
  ] as const)("is made of %j", (tests, expected) => {
    expect(plain(routeMatch(tests))).toEqual(expected);
  });

  it.each([
    [[{ fact: urlPath, test: "suffix", text: "/a" }]],
    [[{ fact: urlPath, test: "prefix", text: "/a?b" }]],
    [
      [
        { fact: urlPath, test: "exact", text: "/a" },
        { fact: urlPath, test: "exact", text: "/b" },
      ],
    ],
  ] as const)("cannot be made of %j", (tests) => {
    expect(routeMatch(tests)).toBeUndefined();
  });
});
