import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type PolicyText, parsePolicy } from "../../../../src/policy/parse.js";
import { buildPolicy, type Policy } from "../../../../src/policy/policy.js";
import { editServices } from "../../../../src/recommend/services/edit-services.js";
import { LatencyCurve } from "../../../../src/recommend/services/latency-curve.js";
import type { ServiceObservations } from "../../../../src/recommend/services/service-observations.js";
import {
  recommendOverload,
  recommendService,
} from "../../../../src/recommend/services/service-proposal.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";

const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: shop}\nspec:\n";

function parse(text: string): { readonly policy: Policy; readonly sources: readonly PolicyText[] } {
  const sources = [{ file: "policy.yaml", text }];
  const parsed = parsePolicy(sources);
  if (parsed.kind !== "policy") throw new Error(JSON.stringify(parsed));
  return { policy: buildPolicy("1", parsed), sources };
}

/** 20 workers of 50 ms, seen with up to 60 requests in flight. */
function observed(fields: Partial<ServiceObservations> = {}): ServiceObservations {
  const curve = new LatencyCurve();
  for (let level = 1; level <= 60; level += 1) {
    for (let i = 0; i < 40; i += 1) {
      curve.add({ level, latencyMs: 50 * Math.max(1, level / 20) * (i % 2 === 0 ? 0.9 : 1.1) });
    }
  }
  return {
    service: "orders",
    source: "a test",
    curve: curve.points(),
    requestCount: 1_000_000,
    durationSeconds: 86_400,
    perSecondMax: 320,
    inFlightMax: 60,
    errorRatio: 0.02,
    quantiles: () => ({ p50: 45, p99: 180 }),
    limit: undefined,
    envoy: {},
    notes: [],
    ...fields,
  };
}

function recommend(service: string, fields: Partial<ServiceObservations> = {}) {
  const { policy, sources } = parse(`${head}  services:\n${service}`);
  const [current] = policy.services;
  if (current === undefined) throw new Error("the policy has a service");
  const recommended = recommendService(observed(fields), current);
  const settingAt = (path: string) => recommended.settings.find((one) => one.path === path);
  return { recommended, settingAt, sources };
}

const plain = "    - name: orders\n      hosts: [orders.example]\n";

describe("recommendService()", () => {
  test("proposes a limit that is optional, since admission learns it", () => {
    const { recommended, settingAt } = recommend(plain);
    expect(settingAt("admission")).toMatchObject({ value: "{}", use: "write" });
    expect(settingAt("admission.maxInFlight")).toMatchObject({ value: 27, use: "optional" });
    expect(settingAt("admission.queue.maxWait")).toMatchObject({ value: "180ms", use: "optional" });
    // 402 per second x 180 ms.
    expect(settingAt("admission.queue.size")).toMatchObject({ value: 73 });
    expect(settingAt("admission.deadline.minRemaining")).toMatchObject({
      value: "45ms",
      was: "5ms",
    });
    expect(recommended.reasons.join(" ")).toContain("`admission: {}` is enough");
  });

  test("corrects a limit that the policy has", () => {
    const { settingAt } = recommend(`${plain}      admission: {maxInFlight: 500}\n`);
    const limit = { value: 27, was: 500, use: "write" };
    expect(settingAt("admission.maxInFlight")).toMatchObject(limit);
    expect(settingAt("admission")).toBeUndefined();
  });

  test("ejects no more hosts than the peak can do without", () => {
    expect(recommend(plain).settingAt("outlierDetection.maxEjectionPercent")).toMatchObject({
      value: 20,
      was: 50,
    });
    const quiet = recommend(plain, { perSecondMax: 100 });
    expect(quiet.settingAt("outlierDetection.maxEjectionPercent")).toBeUndefined();
  });

  test.each([
    { errorRatio: 0, consecutive: undefined },
    { errorRatio: 0.02, consecutive: undefined },
    { errorRatio: 0.15, consecutive: 8 },
  ])("counts as many failures in a row as are no chance: $errorRatio", (row) => {
    const { settingAt } = recommend(plain, { errorRatio: row.errorRatio });
    expect(settingAt("outlierDetection.consecutive5xx")?.value).toBe(row.consecutive);
  });

  test("proposes breakers above what Envoys needed, where the defaults are below", () => {
    const { settingAt } = recommend(plain, { envoy: { connections: 900, pendingRequests: 12 } });
    const connections = { value: 1_800, was: 1_000 };
    expect(settingAt("circuitBreakers.maxConnections")).toMatchObject(connections);
    expect(settingAt("circuitBreakers.maxPendingRequests")).toBeUndefined();
  });

  test.each([
    { why: "no errors are told", fields: { errorRatio: undefined }, words: "needs the statuses" },
    { why: "too much failed", fields: { errorRatio: 0.4 }, words: "40 % of the requests failed" },
    {
      why: "no quantiles are told",
      fields: { quantiles: () => undefined },
      words: "no latency quan",
    },
    { why: "Envoy told nothing", fields: {}, words: "circuitBreakers needs Envoy's own metrics" },
    {
      why: "the load was low",
      fields: { curve: observed().curve.slice(0, 8), inFlightMax: 12, limit: 30 },
      words: "at most 12 requests were in flight, 40 % of the limit of 30",
    },
    {
      why: "there is nearly nothing",
      fields: { curve: [], requestCount: 3 },
      words:
        "Latency is known at 0 numbers of requests in flight (from 3 requests); a curve needs 6",
    },
  ])("says what is missing if $why", ({ fields, words }) => {
    expect(recommend(plain, fields).recommended.missing.join("\n")).toContain(words);
  });

  test("proposes no limit below the knee, and says how to see it", () => {
    const { recommended, settingAt } = recommend(plain, { curve: observed().curve.slice(0, 8) });
    expect(settingAt("admission.maxInFlight")).toBeUndefined();
    expect(recommended.missing.join("\n")).toContain("load test from 320 to 640 requests");
  });
});

describe("what is recommended from any observations", () => {
  const positive = (max: number) => fc.double({ min: 1e-3, max, noNaN: true });
  const curve = fc.array(
    fc.record({
      level: positive(1e6),
      latencyMs: positive(1e7),
      count: fc.nat(1e6),
      errorRatio: fc.double({ min: 0.03, max: 1, noNaN: true }),
    }),
    { maxLength: 40, size: "max" },
  );
  const optional = (max: number) => fc.option(positive(max), { nil: undefined });
  const any = fc.record({
    points: curve,
    isQueue: fc.boolean(),
    knee: fc.integer({ min: 2, max: 100 }),
    spread: fc.integer({ min: 1, max: 8 }),
    requestCount: fc.nat(1e9),
    durationSeconds: positive(1e7),
    perSecondMax: positive(1e9),
    inFlightMax: positive(1e6),
    errorRatio: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
    p50: positive(1e8),
    p99: positive(1e8),
    limit: optional(1e6),
    connections: optional(1e12),
    pendingRequests: optional(1e12),
    heapBytes: optional(1e15),
    downstreamConnections: optional(1e12),
  });

  test("is a policy that is right, or a reason", () => {
    let seenCount = 0;
    fc.assert(
      fc.property(any, ({ points, isQueue, knee, spread, p50, p99, ...fields }) => {
        const { connections, pendingRequests, heapBytes, downstreamConnections } = fields;
        const sorted = points.toSorted((one, other) => one.level - other.level);
        // Half of them are of a queue, so that there is something to propose.
        const queue = sorted.map((one, i) => {
          const level = ((i + 1) * spread * knee) / sorted.length;
          const count = Math.max(50, one.count);
          return { ...one, level, count, latencyMs: 50 * Math.max(1, level / knee) };
        });
        const { recommended, sources } = recommend(plain, {
          ...fields,
          curve: isQueue ? queue : sorted,
          quantiles: () => ({ p50, p99 }),
          envoy: { connections, pendingRequests },
        });
        const overload = recommendOverload({ heapBytes, downstreamConnections }, undefined);
        const services = [recommended];
        const edited = editServices(sources, { services, overload, isFixed: true });
        if (edited.kind === "problem") throw new Error(edited.message);
        parse(edited.sources[0]?.text ?? "");
        const isSeen = recommended.verdict.kind === "seen";
        if (isSeen) seenCount += 1;
        expect(isSeen || recommended.missing.length > 0).toBe(true);
      }),
      propertyRuns(60),
    );
    expect(seenCount).toBeGreaterThan(metCount(3));
  });
});

describe("recommendOverload()", () => {
  test("has twice what a proxy needed", () => {
    const peaks = { heapBytes: 150 * 2 ** 20, downstreamConnections: 2_100 };
    expect(recommendOverload(peaks, undefined)).toMatchObject([
      { path: "overload.maxHeap", value: "320Mi", was: undefined },
      { path: "overload.maxConnections", value: 4_200, was: undefined },
    ]);
    expect(recommendOverload({}, undefined)).toEqual([]);
  });
});

describe("editServices()", () => {
  const overload = recommendOverload({ heapBytes: 200 * 2 ** 20 }, undefined);

  function edit(service: string, isFixed = false) {
    const { recommended, sources } = recommend(service, { errorRatio: 0.15 });
    const edited = editServices(sources, { services: [recommended], overload, isFixed });
    if (edited.kind === "problem") throw new Error(edited.message);
    const text = edited.sources[0]?.text ?? "";
    parse(text);
    return text;
  }

  test("writes a policy with a comment beside each number", () => {
    expect(edit(plain)).toMatchInlineSnapshot(`
      "apiVersion: headgate.dev/v1alpha1
      kind: Policy
      metadata: {name: shop}
      spec:
        services:
          - name: orders
            hosts: [orders.example]
            admission: {} # learns the limit; 20 to 21 requests in flight fill the service
            outlierDetection:
              consecutive5xx: 8 # 15 % errors make so many in a row once a day by chance
              consecutiveGatewayFailure: 8 # 15 % errors make so many in a row once a day by chance
              maxEjectionPercent: 20 # the peak needs 80 % of 400 per second
      "
    `);
  });

  test("writes the fixed numbers on request, and keeps what is written", () => {
    const service = `${plain}      admission: {reject: {retryAfter: {min: 2s}}} # ours\n`;
    expect(edit(service, true)).toMatchInlineSnapshot(`
      "apiVersion: headgate.dev/v1alpha1
      kind: Policy
      metadata: {name: shop}
      spec:
        services:
          - name: orders
            hosts: [orders.example]
            admission:
              reject: {retryAfter: {min: 2s}}
              maxInFlight: 27 # knee at 20.1 in flight, and a queue to keep it busy # ours
              queue:
                maxWait: 180ms # 99 % of responses take no longer while nobody waits
                size: 73 # Little's law: 400 per second x 180ms
              deadline:
                minRemaining: 45ms # half of the responses take longer, even while nobody waits
            outlierDetection:
              consecutive5xx: 8 # 15 % errors make so many in a row once a day by chance
              consecutiveGatewayFailure: 8 # 15 % errors make so many in a row once a day by chance
              maxEjectionPercent: 20 # the peak needs 80 % of 400 per second
        proxies:
          overload:
            maxHeap: 448Mi # twice the 200Mi that a proxy used at most
      "
    `);
  });

  test("leaves off what is off", () => {
    const text = edit(`${plain}      outlierDetection: off\n`);
    expect(text).toContain("outlierDetection: off\n");
    expect(text).not.toContain("consecutive5xx");
  });
});
