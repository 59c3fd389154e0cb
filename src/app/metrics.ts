import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { DecisionCounters } from "../decide/counters.js";
import type { PolicySource } from "../decide/policy-source.js";
import { CountedHistogram } from "./counted-histogram.js";
import type { PolicyStatus } from "./policy-reloader.js";

/** Counts of the process itself: plain integers, read when scraped. */
export interface ProcessCounts {
  /** Calls that failed by a fault of this program. */
  bugCount: number;
  /** Values under our keys in the store that were not ours. */
  badValueCount: number;
}

/** What the metrics are read from, when they are scraped. */
export interface MetricsParts {
  readonly counters: DecisionCounters;
  readonly processCounts: ProcessCounts;
  readonly policies: PolicySource & { readonly status: PolicyStatus };
  /** True while the store is left alone after failures. */
  readonly isDegraded: () => boolean;
  /** Live replicas, as far as this one knows. */
  readonly replicaCount: () => number;
  /** Keys in the embedded store; undefined with another one. */
  readonly memoryKeyCount: () => number | undefined;
  readonly storeKind: "memory" | "redis";
  readonly version: string;
}

/** The process's metrics, in the text format of Prometheus. */
export interface Metrics {
  readonly contentType: string;
  /** All metrics as they are now. */
  render(): Promise<string>;
}

/**
 * All metrics; with its histogram the only file that knows the library. Decisions are counted elsewhere, in plain
 * integers, and read here when scraped. Label values come from the policy and from closed sets, never
 * from callers.
 */
export function createMetrics(parts: MetricsParts): Metrics {
  const registry = new Registry();
  // Resident memory, CPU, event loop delay, garbage collection: under the library's usual names.
  collectDefaultMetrics({ register: registry });
  addDecisionMetrics(registry, parts);
  addFailureMetrics(registry, parts);
  addPolicyMetrics(registry, parts);
  addStoreMetrics(registry, parts);
  addProcessMetrics(registry, parts);
  return { contentType: registry.contentType, render: () => registry.metrics() };
}

function addProcessMetrics(registry: Registry, { processCounts, version }: MetricsParts): void {
  const registers = [registry];
  new Gauge({
    name: "headgate_build_info",
    help: "Always 1; the version of this program.",
    labelNames: ["version"],
    registers,
  }).set({ version }, 1);
  new Counter({
    name: "headgate_bugs_total",
    help: "Calls that failed by a fault of this program.",
    registers,
    collect() {
      this.reset();
      this.inc(processCounts.bugCount);
    },
  });
  new Counter({
    name: "headgate_store_bad_values_total",
    help: "Values under our keys in the store that were not ours; each counted as unused.",
    registers,
    collect() {
      this.reset();
      this.inc(processCounts.badValueCount);
    },
  });
}

function addDecisionMetrics(registry: Registry, { counters, policies }: MetricsParts): void {
  const registers = [registry];
  new Counter({
    name: "headgate_requests_total",
    help: "Requests answered, by overall code.",
    labelNames: ["code"],
    registers,
    collect() {
      this.reset();
      this.inc({ code: "ok" }, counters.okCount);
      this.inc({ code: "over_limit" }, counters.deniedCount);
    },
  });
  new Counter({
    name: "headgate_decisions_total",
    help: "Descriptors decided, by rule; a series begins with its first decision.",
    labelNames: ["domain", "rule", "outcome"],
    registers,
    collect() {
      this.reset();
      const policy = policies.current();
      if (policy === undefined) return;
      for (const { domain, label, ok, over, shadowOver } of counters.forPolicy(policy)) {
        // A series for every rule of a large policy would cost more than it tells.
        if (ok > 0) this.inc({ domain, rule: label, outcome: "ok" }, ok);
        if (over > 0) this.inc({ domain, rule: label, outcome: "over" }, over);
        if (shadowOver > 0) this.inc({ domain, rule: label, outcome: "shadow_over" }, shadowOver);
      }
    },
  });
  new Counter({
    name: "headgate_override_decisions_total",
    help: "Descriptors decided by a limit that the request carried itself.",
    labelNames: ["outcome"],
    registers,
    collect() {
      this.reset();
      this.inc({ outcome: "ok" }, counters.overrideOkCount);
      this.inc({ outcome: "over" }, counters.overrideOverCount);
    },
  });
  new Counter({
    name: "headgate_unmatched_descriptors_total",
    help: "Descriptors of a known domain that met no rule.",
    registers,
    collect() {
      this.reset();
      this.inc(counters.unmatchedDescriptorCount);
    },
  });
  new Counter({
    name: "headgate_unknown_domain_requests_total",
    help: "Requests for a domain that the policy does not hold.",
    registers,
    collect() {
      this.reset();
      this.inc(counters.unknownDomainCount);
    },
  });
  registry.registerMetric(
    new CountedHistogram({
      name: "headgate_decision_duration_seconds",
      help: "How long decisions took, without the transport.",
      counters,
    }),
  );
}

function addFailureMetrics(registry: Registry, { counters }: MetricsParts): void {
  const registers = [registry];
  new Counter({
    name: "headgate_failed_requests_total",
    help: "Requests answered with an error, by its code.",
    labelNames: ["error"],
    registers,
    collect() {
      this.reset();
      for (const [error, count] of counters.failedByCode) this.inc({ error }, count);
    },
  });
  new Counter({
    name: "headgate_fallback_decisions_total",
    help: "Limits answered without the store, by their on_store_failure and the cause.",
    labelNames: ["mode", "error"],
    registers,
    collect() {
      this.reset();
      for (const [mode, byCode] of Object.entries(counters.fallbackByMode)) {
        for (const [error, count] of byCode) this.inc({ mode, error }, count);
      }
    },
  });
  new Counter({
    name: "headgate_store_failures_total",
    help: "Calls to the store that failed, by error.",
    labelNames: ["error"],
    registers,
    collect() {
      this.reset();
      for (const [error, count] of counters.storeFailedByCode) this.inc({ error }, count);
    },
  });
}

function addPolicyMetrics(registry: Registry, { policies }: MetricsParts): void {
  const registers = [registry];
  new Gauge({
    name: "headgate_policy_info",
    help: "Always 1; the version of the policy in force.",
    labelNames: ["version"],
    registers,
    collect() {
      this.reset();
      const { version } = policies.status;
      if (version !== undefined) this.set({ version }, 1);
    },
  });
  new Gauge({
    name: "headgate_policy_rules",
    help: "Rules of the policy in force.",
    registers,
    collect() {
      this.set(policies.status.ruleCount);
    },
  });
  new Counter({
    name: "headgate_policy_loads_total",
    help: "Policies loaded and refused, the first one included.",
    labelNames: ["result"],
    registers,
    collect() {
      this.reset();
      this.inc({ result: "loaded" }, policies.status.loadedCount);
      this.inc({ result: "refused" }, policies.status.refusedCount);
    },
  });
  new Gauge({
    name: "headgate_policy_loaded_timestamp_seconds",
    help: "When the policy in force was loaded.",
    registers,
    collect() {
      this.set((policies.status.loadedEpochUs ?? 0) / 1_000_000);
    },
  });
  new Gauge({
    name: "headgate_policy_stale",
    help: "1 while the newest policy files are refused and an older policy is in force.",
    registers,
    collect() {
      this.set(policies.status.lastProblem === undefined ? 0 : 1);
    },
  });
}

function addStoreMetrics(registry: Registry, parts: MetricsParts): void {
  const registers = [registry];
  new Gauge({
    name: "headgate_store_circuit_open",
    help: "1 while the store is left alone after repeated failures.",
    labelNames: ["store"],
    registers,
    collect() {
      this.set({ store: parts.storeKind }, parts.isDegraded() ? 1 : 0);
    },
  });
  new Gauge({
    name: "headgate_live_replicas",
    help: "Replicas that share the limits, as far as this one knows.",
    registers,
    collect() {
      this.set(parts.replicaCount());
    },
  });
  if (parts.memoryKeyCount() === undefined) return;
  new Gauge({
    name: "headgate_memory_store_keys",
    help: "Keys in the embedded store.",
    registers,
    collect() {
      this.set(parts.memoryKeyCount() ?? 0);
    },
  });
}
