import { describe, expect, it } from "vitest";
import { Noted, type Tree } from "../../../../../src/generate/base/document.js";
import { circuitBreakersTree } from "../../../../../src/generate/envoy/cluster/circuit-breakers.js";
import { outlierDetectionTree } from "../../../../../src/generate/envoy/cluster/outlier-detection.js";
import {
  clusterName,
  serviceClusters,
} from "../../../../../src/generate/envoy/cluster/upstream-cluster.js";
import { defaultBlocks } from "../../../../../src/policy/upstream/default-upstream.js";
import { testService } from "../../../../support/admission.js";
import { reportedService } from "../../../../support/control-rig.js";
import { apiProblems, plain, testContext } from "../../../../support/envoy-parts.js";

const upstream = { address: "orders.example", port: 8080 };
const cluster = "envoy.config.cluster.v3.Cluster";

/** All comments of a tree, one after the other. */
function comments(tree: Tree | undefined): string {
  if (tree === undefined || typeof tree !== "object") return "";
  if (tree instanceof Noted) return `${tree.comment}\n${comments(tree.value)}`;
  return Object.values(tree).map(comments).join("");
}

describe("circuitBreakers()", () => {
  it("has a row for each priority, with a threshold of its own", () => {
    const service = testService({ maxInFlight: 10 });
    const { context } = testContext();
    expect(plain(circuitBreakersTree(service, context))).toEqual({
      thresholds: ["DEFAULT", "HIGH"].map((priority) => ({
        priority,
        max_connections: 1_000,
        max_pending_requests: 100,
        max_requests: 10,
        retry_budget: { budget_percent: { value: 16.6 }, min_retry_concurrency: 3 },
        track_remaining: true,
      })),
    });
  });

  it("bounds retries by number where there is no budget", () => {
    const policy = { ...defaultBlocks.circuitBreakers, retryBudget: undefined, retriesMax: 7 };
    const service = testService(undefined, { circuitBreakers: policy });
    const [row] = thresholdsOf(plain(circuitBreakersTree(service, testContext().context)));
    expect(row).toMatchObject({ max_retries: 7 });
    expect(row).not.toHaveProperty("retry_budget");
  });

  it("says where an automatic number comes from", () => {
    const { context } = testContext({ proxies: { expectedCount: 3 } });
    const part = circuitBreakersTree(reportedService("orders"), context);
    expect(thresholdsOf(plain(part))[0]).toMatchObject({ max_requests: 334 });
    expect(comments(part)).toContain(
      "maximum limit of the service, 1000, divided by the 3 expected proxies, rounded up",
    );
    const whole = circuitBreakersTree(testService({ maxInFlight: 10 }), context);
    expect(thresholdsOf(plain(whole))[0]).toMatchObject({ max_requests: 10 });
    expect(comments(whole)).toContain("Headgate's permits admit no more in the whole fleet");
    expect(comments(circuitBreakersTree(testService(undefined), context))).toContain(
      "Envoy's own default",
    );
  });

  it("says nothing of a number that the policy says and nobody drives", () => {
    const policy = { ...defaultBlocks.circuitBreakers, requestsMax: 5 };
    const service = testService(undefined, { circuitBreakers: policy });
    const text = comments(circuitBreakersTree(service, testContext().context));
    expect(text).toBe("For critical requests, which the threshold above never refuses.\n");
  });
});

function thresholdsOf(value: unknown): readonly unknown[] {
  const list: unknown = Reflect.get(Object(value), "thresholds");
  return Array.isArray(list) ? list : [];
}

describe("outlierDetection()", () => {
  it("acts on gateway failures, and not on success rates that nobody asked for", () => {
    expect(outlierDetectionTree(defaultBlocks.outlierDetection)).toMatchObject({
      consecutive_5xx: 5,
      consecutive_gateway_failure: 5,
      enforcing_consecutive_gateway_failure: 100,
      max_ejection_percent: 50,
      enforcing_success_rate: 0,
      base_ejection_time: "30s",
    });
  });

  it("writes deviations as thousandths", () => {
    const successRate = { hostsMin: 3, requestsMin: 50, deviations: 1.9 };
    expect(outlierDetectionTree({ ...defaultBlocks.outlierDetection, successRate })).toMatchObject({
      enforcing_success_rate: 100,
      success_rate_minimum_hosts: 3,
      success_rate_request_volume: 50,
      success_rate_stdev_factor: 1_900,
    });
  });
});

describe("serviceClusters()", () => {
  const service = testService(undefined, { upstream, clusters: ["orders-blue", "orders"] });

  it("leads to the upstream, and is right by Envoy's own rules", () => {
    const { context, problems } = testContext();
    const [first, ...others] = serviceClusters(service, context);
    expect(others).toEqual([]);
    expect(plain(first)).toMatchObject({
      name: "orders",
      type: "STRICT_DNS",
      connect_timeout: "0.25s",
      outlier_detection: { consecutive_5xx: 5 },
    });
    expect(apiProblems(cluster, first)).toEqual([]);
    expect(problems).toEqual([]);
  });

  it("leaves outlier detection out where the policy does, and for a single host beside it", () => {
    const off = testService(undefined, { upstream, outlierDetection: undefined });
    const own = testContext({ role: "sidecar" }).context;
    for (const [one, context] of [
      [off, testContext().context],
      [service, own],
    ] as const) {
      expect(plain(serviceClusters(one, context)[0])).not.toHaveProperty("outlier_detection");
    }
    const [beside] = serviceClusters(service, own);
    expect(plain(beside)).toMatchObject({ type: "STATIC" });
    expect(JSON.stringify(plain(beside))).toContain('"address":"127.0.0.1","port_value":8080');
  });

  it("has another name and no limits before a service whose callers hold them", () => {
    const outbound = testService(undefined, { upstream, direction: "outbound" });
    const own = testContext({ role: "sidecar" }).context;
    const callers = testContext({ role: "sidecar", side: "outbound" }).context;
    expect(clusterName(outbound, own)).toBe("local_orders");
    expect(clusterName(outbound, callers)).toBe("orders");
    expect(clusterName(outbound, testContext().context)).toBe("orders");
    const [row] = thresholdsOf(
      Reflect.get(Object(plain(serviceClusters(outbound, own)[0])), "circuit_breakers"),
    );
    expect(row).toMatchObject({ max_requests: 2 ** 32 - 1 });
    expect(apiProblems(cluster, serviceClusters(outbound, own)[0])).toEqual([]);
  });

  it("is written once for each name, to be merged, as fragments", () => {
    const { context } = testContext();
    const options = { ...context.options, form: "fragments" as const };
    const found = serviceClusters(service, { ...context, options }).map(plain);
    expect(found.map((one) => Reflect.get(Object(one), "name"))).toEqual(["orders", "orders-blue"]);
  });

  it("is not there for a service without an upstream, which is reported", () => {
    const { context, problems } = testContext();
    expect(serviceClusters(testService(undefined), context)).toEqual([]);
    expect(problems).toMatchObject([{ id: "HG301", severity: "error" }]);
    const pieces = testContext();
    const options = { ...pieces.context.options, form: "fragments" as const };
    expect(serviceClusters(testService(undefined), { ...pieces.context, options })).toEqual([]);
    expect(pieces.problems).toMatchObject([{ id: "HG302", severity: "warning" }]);
  });
});
