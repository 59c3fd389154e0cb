import { describe, expect, it } from "vitest";
import type { FinishedRun } from "../../src/simulate/report/run-summary.js";
import { runInput, scenarioInput } from "../support/scenario-run.js";

const admissionPolicy = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: fleet}
spec:
  services: [{name: api, admission: {maxInFlight: 40}}]
  proxies: {headgate: {failureModeDeny: DENIES}}
`;

interface Parts {
  readonly fleet?: string;
  readonly workers?: number;
  readonly service?: string;
  readonly caller?: string;
  readonly events?: string;
  readonly policy?: string;
}

/** 200 requests a second for 20 s, and twelve workers of 20 ms where nothing else is said. */
async function run(parts: Parts): Promise<FinishedRun> {
  const { fleet, service, caller, events, policy, workers = 12 } = parts;
  const text = `
duration: 20s
warmUp: 2s
fleet: {${fleet ?? ""}}
services: [{name: api, workers: ${workers}, ${service ?? "serviceTime: {fixed: 20ms}"}}]
callers: [{name: a, rate: 200, ${caller ?? ""}}]
events: [${events ?? ""}]
`;
  return runInput(scenarioInput(text, policy));
}

/** The sum of a series over some seconds. */
function sum({ series }: FinishedRun, name: string, [from, to] = [0, 20]): number {
  return (series.get(name) ?? []).slice(from, to).reduce((all, value) => all + value, 0);
}

describe("hedging", () => {
  // More than enough, since the service goes on with what is cancelled.
  const workers = 60;
  const service = "serviceTime: {bimodal: {fast: 20ms, slow: 800ms, slowRatio: 0.02}}";

  it("answers with the first of two attempts, and counts the request once", async () => {
    const plain = await run({ workers, service, caller: "retries: {attempts: 2}" });
    const caller = "retries: {attempts: 2, hedgeAfter: 60ms}";
    const hedged = await run({ workers, service, caller });
    expect(plain.summary.total.latencyMs?.p99).toBeGreaterThan(700);
    expect(hedged.summary.total.latencyMs?.p99).toBeLessThan(120);
    const { offered, served, attempts, open } = hedged.summary.total;
    expect(served + open).toBe(offered);
    expect(attempts / offered).toBeGreaterThan(1.015);
    expect(attempts / offered).toBeLessThan(1.03);
  });

  it("stays within the budget of retries", async () => {
    const caller = "deadline: 5s, retries: {attempts: 3, hedgeAfter: 5ms, budget: 0.1}";
    const one = await run({ caller });
    const [offered, attempts] = [sum(one, "offered"), sum(one, "attempts")];
    // Ten at the start beside those of the budget.
    expect(attempts).toBeLessThanOrEqual(1.1 * offered + 10);
    expect(attempts).toBeGreaterThan(1.09 * offered);
  });

  it("takes the others off their workers, where the service stops such work", async () => {
    const slow = "serviceTime: {bimodal: {fast: 20ms, slow: 800ms, slowRatio: 0.1}}";
    const caller = "retries: {attempts: 2, hedgeAfter: 60ms}";
    const goesOn = await run({ workers, service: slow, caller });
    const stops = await run({ workers, service: `${slow}, stopsAbandoned: yes`, caller });
    expect(sum(stops, "api.busy")).toBeLessThan(0.7 * sum(goesOn, "api.busy"));
  });

  it("tries again only when no attempt is on its way", async () => {
    // Both attempts of a request are failed by a service without workers and places.
    const caller = "deadline: 200ms, retries: {attempts: 4, hedgeAfter: 50ms, backoff: 10ms}";
    const events = "{at: 0s, workers: {ratio: 0}}";
    const { offered, attempts, abandoned, open } = (await run({ caller, events })).summary.total;
    expect(abandoned + open).toBe(offered);
    expect(attempts).toBeLessThanOrEqual(4 * offered);
  });
});

describe("keep-alive", () => {
  const fleet = "envoys: 4";
  const events = "{at: 2s, deploy: {of: envoys, down: 1s, pause: 500ms}}";
  const lastShare = (one: FinishedRun): number =>
    sum(one, "envoy4.attempts", [12, 20]) / sum(one, "attempts", [12, 20]);

  it("leaves the Envoy that restarted last without requests, until connections end", async () => {
    const none = await run({ fleet, events });
    expect(lastShare(none)).toBeCloseTo(0.25, 1);
    const kept = await run({ fleet, events, caller: "keepAlive: {connections: 40}" });
    expect(lastShare(kept)).toBeLessThan(0.05);
    const bounded = "keepAlive: {connections: 40, lifetime: 3s}";
    expect(lastShare(await run({ fleet, events, caller: bounded }))).toBeCloseTo(0.25, 1);
    for (const { summary } of [none, kept]) expect(summary.total.failed).toBe(0);
  });

  it("keeps the requests of a connection at one Envoy", async () => {
    const one = await run({ fleet, caller: "keepAlive: {connections: 1}" });
    const counts = [1, 2, 3, 4].map((i) => sum(one, `envoy${i}.attempts`));
    expect(counts.filter((count) => count > 0)).toEqual([sum(one, "attempts")]);
  });
});

describe("a deploy of Headgate", () => {
  const policy = admissionPolicy.replace("DENIES", "false");
  const events = "{at: 2s, deploy: {down: 1s, pause: 1s}}";
  const lastShare = (one: FinishedRun): number =>
    sum(one, "headgate3.asked", [12, 20]) / sum(one, "attempts", [12, 20]);

  it("loses no request, and brings each replica its part again", async () => {
    const one = await run({ policy, events, fleet: "headgates: 3, envoys: 6" });
    const { offered, served, failed, open } = one.summary.total;
    expect(failed).toBe(0);
    expect(served + open).toBeGreaterThan(0.99 * offered);
    expect(sum(one, "headgate1.asked", [2, 3])).toBeLessThan(20);
    expect(lastShare(one)).toBeCloseTo(1 / 3, 1);
  });

  it("leaves the last replica without connections, for as long as they last", async () => {
    const fleet = "headgates: 3, envoys: 6, balancing: connection";
    expect(lastShare(await run({ policy, events, fleet }))).toBe(0);
    const bounded = `${fleet}, connectionLifetime: 2s`;
    expect(lastShare(await run({ policy, events, fleet: bounded }))).toBeGreaterThan(0.1);
  });

  it.each([
    [false, 0, 200],
    [true, 200, 0],
  ])("of a single replica lets pass without an answer or not: %s", async (isDenied, ...counts) => {
    const [failed, served] = counts;
    const one = await run({
      policy: admissionPolicy.replace("DENIES", String(isDenied)),
      events: "{at: 5s, deploy: {down: 3s}}",
    });
    expect(Math.abs(sum(one, "failed", [6, 7]) - failed)).toBeLessThan(50);
    expect(Math.abs(sum(one, "served", [6, 7]) - served)).toBeLessThan(50);
    expect(sum(one, "failed", [9, 20])).toBe(0);
  });
});

describe("a deploy of workers", () => {
  it("restarts one part after the other, which are cold then", async () => {
    const warm = "serviceTime: {fixed: 20ms}, warmUp: {for: 3s, factor: 4}";
    const events = "{at: 6s, deploy: {of: workers, parts: 4, down: 1s, pause: 1s}}";
    const one = await run({ service: warm, events });
    expect(one.series.get("api.workers")?.slice(5, 14)).toEqual([9, 12, 9, 12, 9, 12, 9, 12, 12]);
    expect(one.summary.total.failed).toBe(0);
    const busy = (from: number, to: number) => sum(one, "api.busy", [from, to]) / (to - from);
    expect(busy(7, 14)).toBeGreaterThan(1.2 * busy(4, 6));
    expect(busy(17, 20)).toBeLessThan(1.1 * busy(4, 6));
  });
});

describe("zones", () => {
  const lost = "{at: 5s, for: 5s, zone: {lost: 2}}";

  it("loses what a zone has, and has it back", async () => {
    const fleet = "envoys: 3, headgates: 3, zones: 3";
    const policy = admissionPolicy.replace("DENIES", "false");
    const one = await run({ fleet, policy, events: lost });
    const { offered, served, failed, open } = one.summary.total;
    expect(failed).toBeGreaterThan(0);
    // What was on its way through the zone then, or in it: no more than were in flight.
    expect(failed).toBeLessThan(10);
    expect(served + failed + open).toBeGreaterThan(0.995 * offered);
    expect(one.series.get("api.workers")?.slice(3, 11)).toEqual([12, 8, 8, 8, 8, 8, 12, 12]);
    expect(sum(one, "envoy2.attempts", [5, 10])).toBe(0);
    expect(sum(one, "headgate2.asked", [5, 10])).toBe(0);
    expect(sum(one, "envoy2.attempts", [12, 20])).toBeGreaterThan(300);
    expect(sum(one, "headgate2.asked", [12, 20])).toBeGreaterThan(300);
  });

  it("are preferred where that is said, as uneven as the Envoys may be", async () => {
    // Two of three Envoys share half of the workers: 133 of 200 requests, where 120 fit.
    const service = "serviceTime: {fixed: 50ms}";
    const fleet = "envoys: 3, zones: 2";
    const spread = await run({ fleet, service });
    const local = await run({ fleet: `${fleet}, zoneLocal: true`, service });
    expect(spread.summary.total.latencyMs?.p99).toBeLessThan(300);
    expect(local.summary.total.latencyMs?.p99).toBeGreaterThan(500);
    const alone = await run({ fleet: `${fleet}, zoneLocal: true`, events: lost });
    expect(sum(alone, "served", [6, 10])).toBeGreaterThan(700);
  });
});

describe("a rate limit that delays", () => {
  const policyOf = (over: string): string => `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: paced}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: all
          value: api
          rate_limit: {unit: second, requests_per_unit: 220, burst: 1, over: ${over}}
  services:
    - name: api
      admission: {}
      rateLimit: {domain: shop, inExtProc: true, descriptors: [[{value: api, as: all}]]}
`;

  it("spreads bursts that it would have refused", async () => {
    const refusing = await run({ policy: policyOf("refuse") });
    const delaying = await run({ policy: policyOf("{delay: {max: 1s}}") });
    expect(refusing.summary.total.refused / refusing.summary.total.offered).toBeGreaterThan(0.1);
    const { offered, served, refused, open } = delaying.summary.total;
    expect([refused, served + open]).toEqual([0, offered]);
  });
});

const keyedPolicy = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: keyed}
spec:
  services:
    - name: api
      admission: {maxInFlightPer: {per: {header: x-user}, max: 4}}
`;

describe("maxInFlightPer", () => {
  // Ten of one user are in flight without a bound.
  const caller = "deadline: 1s, headers: {x-user: ann}";

  it("bounds the calls of a user in all replicas together", async () => {
    const fleet = "envoys: 4, headgates: 4";
    const service = "serviceTime: {fixed: 50ms}";
    const parts = { fleet, workers: 60, service, caller, policy: keyedPolicy };
    const inFlight = (await run(parts)).series.get("api.busy") ?? [];
    expect(Math.max(...inFlight.slice(2))).toBeLessThanOrEqual(4);
    expect(Math.max(...inFlight.slice(2))).toBeGreaterThan(3);
  });
});
