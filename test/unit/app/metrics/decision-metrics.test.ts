import { beforeEach, describe, expect, it } from "vitest";
import { createProcessMetrics } from "../../../../src/app/base/metrics.js";
import { decisionMetrics, storeMetrics } from "../../../../src/app/metrics/decision-metrics.js";
import { policyMetrics } from "../../../../src/app/metrics/policy-metrics.js";
import { newProcessCounts, processMetrics } from "../../../../src/app/metrics/process-metrics.js";
import type { PolicyStatus } from "../../../../src/app/policy/active-policy.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { OverloadCause } from "../../../../src/decide/rate-limit/pressure.js";
import type { Policy } from "../../../../src/policy/policy.js";
import { emptyPolicySize } from "../../../../src/policy/policy-size.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

let counters: DecisionCounters;
let status: PolicyStatus;
let policy: Policy | undefined;
let isDegraded: boolean;

beforeEach(() => {
  counters = new DecisionCounters();
  status = { ...emptyPolicySize, loadedCount: 0, refusedCount: 0 };
  policy = undefined;
  isDegraded = false;
});

async function lines({
  overloadCause = undefined as OverloadCause | undefined,
  inFlightCount = 0,
  memoryKeyCount = (): number | undefined => 41,
} = {}): Promise<readonly string[]> {
  const metrics = createProcessMetrics();
  const policies = {
    current: () => policy,
    get status() {
      return status;
    },
  };
  metrics.add(
    decisionMetrics({
      counters,
      policies,
      overloadCause: () => overloadCause,
      inFlightCount: () => inFlightCount,
    }),
    policyMetrics(policies),
    storeMetrics({
      counters,
      isDegraded: () => isDegraded,
      replicaCount: () => 2,
      memoryKeyCount,
      storeKind: "memory",
    }),
    processMetrics(newProcessCounts(), "1.2.3"),
  );
  // Twice: what is read when scraped must not add up.
  await metrics.render();
  return (await metrics.render()).split("\n");
}

describe("the metrics of decisions, the store and the policy", () => {
  it("shows a process that has decided nothing yet", async () => {
    const text = await lines();
    expect(text).toContain('headgate_build_info{version="1.2.3"} 1');
    expect(text).toContain('headgate_requests_total{code="ok"} 0');
    expect(text).toContain("headgate_decision_duration_seconds_count 0");
    expect(text).toContain("headgate_memory_store_keys 41");
    expect(text.some((line) => line.startsWith("nodejs_eventloop_lag_p99_seconds "))).toBe(true);
    expect(text.some((line) => line.startsWith("process_resident_memory_bytes "))).toBe(true);
  });

  it("shows no keys of an embedded store where there is another one", async () => {
    const text = await lines({ memoryKeyCount: () => undefined });
    expect(text.join("\n")).not.toContain("headgate_memory_store_keys");
  });

  it("shows failures by code, and answers without the store by mode and cause", async () => {
    counters.countFailure("REQUEST_INVALID");
    counters.countFailure("REQUEST_INVALID");
    counters.countStoreFailure("STORE_TIMEOUT");
    counters.countFallback("deny", "STORE_TIMEOUT");
    const text = await lines();
    expect(text).toContain('headgate_failed_requests_total{error="REQUEST_INVALID"} 2');
    expect(text).toContain('headgate_store_failures_total{error="STORE_TIMEOUT"} 1');
    expect(text).toContain(
      'headgate_fallback_decisions_total{mode="deny",error="STORE_TIMEOUT"} 1',
    );
  });

  it("shows why the process is overloaded, and what it has in work", async () => {
    const calm = await lines();
    expect(calm).toContain('headgate_overloaded{cause="loop_delay"} 0');
    expect(calm).toContain('headgate_overloaded{cause="in_flight"} 0');
    const late = await lines({ overloadCause: "loopDelay", inFlightCount: 7 });
    expect(late).toContain('headgate_overloaded{cause="loop_delay"} 1');
    expect(late).toContain('headgate_overloaded{cause="in_flight"} 0');
    expect(late).toContain("headgate_requests_in_flight 7");
    const full = await lines({ overloadCause: "inFlight" });
    expect(full).toContain('headgate_overloaded{cause="in_flight"} 1');
  });

  it("shows how much the store was asked, and what it was spared", async () => {
    counters.batchCount = 2;
    counters.batchRequestCount = 30;
    counters.batchChargeCount = 45;
    counters.coalescedCount = 4;
    counters.refusedFromMemoryCount = 5;
    const text = await lines();
    expect(text).toContain("headgate_store_batches_total 2");
    expect(text).toContain("headgate_store_batch_requests_total 30");
    expect(text).toContain("headgate_store_batch_charges_total 45");
    expect(text).toContain("headgate_coalesced_requests_total 4");
    expect(text).toContain("headgate_over_limit_cache_denials_total 5");
  });

  it("shows by rule what was sent to a shared bucket", async () => {
    policy = testPolicy([{ path: ["user"], effect: [testLimit(1)] }]);
    const [user] = counters.forPolicy(policy);
    expect((await lines()).join("\n")).not.toContain("headgate_overflow_descriptors_total{");
    if (user === undefined) throw new Error("no counters");
    user.newKeys.overflowCount = 9;
    expect(await lines()).toContain(
      'headgate_overflow_descriptors_total{domain="shop",rule="user"} 9',
    );
  });

  it("counts a decision into every latency bucket that holds it", async () => {
    counters.countLatency(0.7);
    counters.countLatency(5_000);
    const text = await lines();
    const bucket = (le: string) => `headgate_decision_duration_seconds_bucket{le="${le}"}`;
    expect(text).toContain(`${bucket("0.0005")} 0`);
    expect(text).toContain(`${bucket("0.001")} 1`);
    expect(text).toContain(`${bucket("1")} 1`);
    expect(text).toContain(`${bucket("+Inf")} 2`);
    expect(text).toContain("headgate_decision_duration_seconds_sum 5.0007");
  });

  it("shows the limits of rules that have decided, in requests a second", async () => {
    policy = testPolicy([
      {
        path: ["user"],
        effect: [
          testLimit(5, { unit: "second", periodUs: 1_000_000 }),
          testLimit(120, { burst: 20 }),
          testLimit(36, { unit: "hour", periodUs: 3_600_000_000, name: "hourly" }),
        ],
      },
      { path: ["team"], effect: [testLimit(1)] },
      { path: ["open"], effect: { kind: "unlimited" } },
    ]);
    const [user, , free] = counters.forPolicy(policy);
    if (user === undefined || free === undefined) throw new Error("no counters");
    const limits = async () =>
      (await lines()).filter((line) => line.startsWith("headgate_rule_limit_"));
    expect(await limits()).toEqual([]);
    user.shadowOver = 1;
    free.ok = 1;
    expect(await limits()).toEqual([
      'headgate_rule_limit_requests_per_second{domain="shop",rule="user",limit="1"} 5',
      'headgate_rule_limit_requests_per_second{domain="shop",rule="user",limit="2"} 2',
      'headgate_rule_limit_requests_per_second{domain="shop",rule="user",limit="hourly"} 0.01',
      'headgate_rule_limit_burst_requests{domain="shop",rule="user",limit="1"} 5',
      'headgate_rule_limit_burst_requests{domain="shop",rule="user",limit="2"} 20',
      'headgate_rule_limit_burst_requests{domain="shop",rule="user",limit="hourly"} 36',
    ]);
    policy = testPolicy([{ path: ["user"], effect: [testLimit(420)] }], "v2");
    expect(await limits()).toEqual([
      'headgate_rule_limit_requests_per_second{domain="shop",rule="user",limit="1"} 7',
      'headgate_rule_limit_burst_requests{domain="shop",rule="user",limit="1"} 420',
    ]);
  });

  it("shows one limit under a name that two of a rule have", async () => {
    const twice = [testLimit(300, { name: "same" }), testLimit(9, { name: "same" })];
    policy = testPolicy([{ path: ["user"], effect: twice }]);
    const [user] = counters.forPolicy(policy);
    if (user === undefined) throw new Error("no counters");
    user.ok = 1;
    expect(await lines()).toContain(
      'headgate_rule_limit_requests_per_second{domain="shop",rule="user",limit="same"} 5',
    );
  });

  it("begins a rule's series with its first decision and ends it with the rule", async () => {
    policy = testPolicy([
      { path: ["user"], effect: [testLimit(1)] },
      { path: ["team"], effect: [testLimit(1)] },
    ]);
    const [user] = counters.forPolicy(policy);
    if (user === undefined) throw new Error("no counters");
    user.shadowOver = 3;
    const text = await lines();
    expect(text.filter((line) => line.startsWith("headgate_decisions_total{"))).toEqual([
      'headgate_decisions_total{domain="shop",rule="user",outcome="shadow_over"} 3',
    ]);
    policy = testPolicy([{ path: ["team"], effect: [testLimit(1)] }], "v2");
    const later = await lines();
    expect(later.filter((line) => line.startsWith("headgate_decisions_total{"))).toEqual([]);
  });

  it("shows the active policy, and whether a newer one is refused", async () => {
    status = {
      version: "v2",
      ruleCount: 7,
      limitCount: 9,
      domainCount: 1,
      serviceCount: 0,
      roomCount: 0,
      budgetCount: 0,
      loadedCount: 2,
      refusedCount: 1,
      loadedEpochUs: 1_700_000_000_500_000,
      lastProblem: "words",
    };
    isDegraded = true;
    const text = await lines();
    for (const line of [
      'headgate_policy_info{version="v2"} 1',
      "headgate_policy_rules 7",
      "headgate_policy_limits 9",
      'headgate_policy_loads_total{result="loaded"} 2',
      'headgate_policy_loads_total{result="refused"} 1',
      "headgate_policy_loaded_timestamp_seconds 1700000000.5",
      "headgate_policy_stale 1",
      'headgate_store_circuit_open{store="memory"} 1',
    ]) {
      expect(text).toContain(line);
    }
  });
});
