import { describe, expect, it } from "vitest";
import { History } from "../../../../src/app/admin/history.js";
import { AdmissionCounts } from "../../../../src/decide/admission/admission-counts.js";
import type { ServiceAdmission } from "../../../../src/decide/admission/service-admission.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import { type Policy, PolicyBuilder } from "../../../../src/policy/policy.js";
import { servicesPolicy, testService } from "../../../support/admission.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { testLimit } from "../../../support/policies.js";

/** Rules of these names, each in a domain that has its first letter. */
function rulesPolicy(labels: readonly string[], version = "v1"): Policy {
  const builder = new PolicyBuilder(version);
  builder.addDomains([...new Set(labels.map((label) => label.slice(0, 1)))]);
  const effect = { kind: "limited", limits: [testLimit(10)] } as const;
  builder.add(
    labels.map((label, index) => {
      return { domain: label.slice(0, 1), path: [{ key: label }], effect, label, index };
    }),
  );
  return builder.finish();
}

const everything = {
  sinceEpochMs: 0,
  service: undefined,
  room: undefined,
  rules: [],
  domains: undefined,
  isServiceAsked: () => true,
} as const;

const startEpochUs = 1_700_000_000_300_000;

function start(first: Policy) {
  const clock = new FakeClock({ epochUs: startEpochUs });
  const counters = new DecisionCounters();
  const counts = new AdmissionCounts();
  let policy = first;
  let isDegraded = false;
  const admission = { name: "orders", counts } as ServiceAdmission;
  const level = { name: "orders", law: "gradient", gate: undefined } as const;
  const history = new History({
    clock,
    counters,
    policies: { current: () => policy },
    admission: { services: () => [admission] },
    levelsOf: () => ({
      ...level,
      concurrencyLimit: 12.7,
      inFlight: 3,
      waitingCount: 2,
      rttMs: 1.5,
      minRttMs: 1,
      gradient: 0.5,
      overflowPerSecond: 0,
      reservedHigh: 0,
    }),
    isDegraded: () => isDegraded,
    envoyCount: () => 7,
    rooms: undefined,
  });
  return {
    clock,
    counters,
    counts,
    history,
    rule: (at: number) => {
      const rule = counters.forPolicy(policy)[at];
      if (rule === undefined) throw new Error("there is no such rule");
      return rule;
    },
    load: (next: Policy) => {
      policy = next;
    },
    degrade: () => {
      isDegraded = true;
    },
  };
}

describe("History", () => {
  it("tells what was counted in each second, and how things stood", () => {
    const { clock, counters, history, rule, degrade } = start(rulesPolicy(["a"]));
    counters.okCount += 5;
    counters.deniedCount += 2;
    counters.countFallback("allow", "STORE_TIMEOUT");
    counters.countFallback("deny", "STORE_TIMEOUT");
    rule(0).shadowOver += 3;
    rule(0).hits.near += 4;
    for (let i = 0; i < 100; i += 1) counters.countLatency(i === 99 ? 0.8 : 0.2);
    clock.advance(1_000);
    degrade();
    counters.okCount += 1;
    clock.advance(1_000);
    const { startMs, columns } = history.read(everything).replica;
    expect(startMs).toBe(1_700_000_000_000);
    expect(columns).toMatchObject({
      admitted: [0, 5, 1],
      overLimit: [0, 2, 0],
      failurePassed: [0, 1, 0],
      failureRefused: [0, 1, 0],
      failureLocal: [0, 0, 0],
      shadow: [0, 3, 0],
      nearLimit: [0, 4, 0],
      degraded: [0, 0, 1],
      envoys: [7, 7, 7],
    });
    expect(columns.latencyMsP50[1]).toBeGreaterThan(0.1);
    expect(columns.latencyMsP50[1]).toBeLessThanOrEqual(0.25);
    expect(columns.latencyMsP99[1]).toBeLessThanOrEqual(0.25);
    expect(columns.latencyMsP99[2]).toBe(0);
  });

  it("shares what was counted over the seconds that a late look missed", () => {
    const { clock, counters, history } = start(rulesPolicy(["a"]));
    counters.okCount += 40;
    // The event loop stood still.
    clock.stepEpoch(3_000_000);
    clock.advance(1_000);
    const { admitted } = history.read(everything).replica.columns;
    expect(admitted).toEqual([0, 10, 10, 10, 10]);
  });

  it("counts for who sees some domains only what is theirs", () => {
    const { clock, history, rule, counts } = start(rulesPolicy(["a", "b"]));
    rule(0).ok += 3;
    rule(0).over += 1;
    rule(1).ok += 50;
    counts.admitted.normal += 9;
    clock.advance(1_000);
    const theirs = { ...everything, domains: ["a"], isServiceAsked: () => false };
    const { columns } = history.read(theirs).replica;
    expect(columns).toMatchObject({ admitted: [0, 3], overLimit: [0, 1], envoys: [7, 7] });
    expect(columns.admissionAdmitted).toEqual([0, 0]);
    expect(history.read({ ...theirs, domains: [] }).replica.columns.admitted).toEqual([0, 0]);
  });

  it("tells of services by class, and of requests over a limit apart", () => {
    const { clock, history, counts } = start(servicesPolicy([testService({})]));
    counts.admitted.high += 4;
    counts.refused.add("low", "priority");
    counts.refused.add("low", "rateLimit");
    clock.advance(1_000);
    const { replica, services } = history.read(everything);
    expect(replica.columns).toMatchObject({ admissionAdmitted: [0, 4], admissionRefused: [0, 1] });
    expect(services).toMatchObject([
      {
        name: "orders",
        columns: {
          concurrencyLimit: [12, 12],
          inFlight: [3, 3],
          "admitted high": [0, 4],
          "refused low": [0, 2],
        },
      },
    ]);
    expect(history.read({ ...everything, service: "another" }).services).toEqual([]);
    const some = history.read({ ...everything, domains: [] }).replica.columns;
    expect(some).toMatchObject({ admissionAdmitted: [0, 4], admissionRefused: [0, 1] });
    expect(history.recentOf("orders")).toEqual({ admitted: 4, refused: 2 });
    clock.advance(9_000);
    expect(history.recentOf("orders")).toEqual({ admitted: 4, refused: 2 });
    clock.advance(1_000);
    expect(history.recentOf("orders")).toEqual({ admitted: 0, refused: 0 });
  });

  it("tells of rules in steps of ten seconds, from their first hit on", () => {
    const { clock, history, rule } = start(rulesPolicy(["a", "b"]));
    rule(0).hits.total += 6;
    rule(0).hits.over += 2;
    clock.advance(10_000);
    rule(0).hits.total += 1;
    clock.advance(10_000);
    const rules = [
      { domain: "a", label: "a" },
      { domain: "b", label: "b" },
    ];
    expect(history.read({ ...everything, rules }).rules).toEqual([
      {
        domain: "a",
        label: "a",
        startMs: 1_700_000_010_000,
        columns: { hits: [6, 1], overLimit: [2, 0] },
      },
    ]);
    expect(history.read(everything).rules).toEqual([]);
  });

  it("goes on over another policy, and drops what that has no more", () => {
    const { clock, history, rule, load } = start(rulesPolicy(["a", "b"]));
    rule(0).ok += 1_000;
    rule(0).hits.total += 1_000;
    clock.advance(10_000);
    const held = history.byteCount;
    load(rulesPolicy(["b", "c"], "v2"));
    clock.advance(1_000);
    rule(0).ok += 2;
    clock.advance(1_000);
    const ofB = history.read({ ...everything, domains: ["b"] }).replica.columns.admitted;
    expect(ofB.slice(-2)).toEqual([0, 2]);
    const rules = [{ domain: "a", label: "a" }];
    expect(history.read({ ...everything, rules }).rules).toEqual([]);
    // A rule less: two columns of 90 steps.
    expect(history.byteCount).toBe(held - 2 * 90 * 4);
  });

  it("is bounded, whatever a policy holds, and gives back what is idle", () => {
    const labels = Array.from(
      { length: 6_000 },
      (_, i) => `${String.fromCodePoint(65 + (i % 99))}${i}`,
    );
    const { clock, history, rule } = start(rulesPolicy(labels));
    for (const at of labels.keys()) rule(at).hits.total += 1;
    clock.advance(20_000);
    const held = history.byteCount;
    expect(held).toBeGreaterThan(2_900_000);
    expect(held).toBeLessThan(4_500_000);
    clock.advance(910_000);
    expect(history.byteCount).toBeLessThan(1_100_000);
  });

  it("leaves no timer behind", () => {
    const { clock, history } = start(rulesPolicy(["a"]));
    history.close();
    expect(clock.timerCount).toBe(0);
  });
});
