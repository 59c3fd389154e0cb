import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { snakeCase } from "../../core/base/snake-case.js";
import type { ExchangeCounts } from "../../decide/admission/exchange-counts.js";
import type { DecisionCounters } from "../../decide/rate-limit/counters.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import { type OverloadCause, overloadCauses } from "../../decide/rate-limit/pressure.js";
import type { RefusalLog } from "../../decide/rate-limit/refusal-log.js";
import { type SignalMetricsParts, signalMetrics } from "../admission/signal-metrics.js";
import type { RefusedConnections } from "../base/address-bound.js";
import { addCounter, addGauge, addHistogram, addLatency } from "../base/metric-kinds.js";
import type { FleetLoopStatus } from "../fleet/fleet-loop.js";
import { fleetMetrics } from "../fleet/fleet-metrics.js";
import { type AuditCounts, auditMetric } from "../operator/audited-records.js";
import { overrideMetrics } from "../operator/operator-records.js";
import {
  type PolicyOperationsMetricsParts,
  policyOperationsMetrics,
} from "../operator/policy-admin-metrics.js";
import type { PolicyStatus } from "../policy/active-policy.js";
import type { XdsStatus } from "../policy/policy-xds.js";
import type { TlsStatus } from "../tls/tls.js";
import { tlsMetrics } from "../tls/tls-metrics.js";
import { type AdminCounts, adminMetrics } from "./admin-metrics.js";
import { type AdmissionMetricsParts, admissionMetrics } from "./admission-metrics.js";
import { type ControlMetricsParts, controlMetrics } from "./control-port-metrics.js";
import { refusalLogMetric } from "./denial-log-metrics.js";
import { exchangeMetrics } from "./exchange-metrics.js";
import { type NativeTransportCounts, nativeTransportMetrics } from "./native-transport-metrics.js";
import { hitMetrics } from "./stats-hit-metrics.js";
import { xdsMetrics } from "./xds-metrics.js";

/** Counts of the process itself: plain integers, read when scraped. */
export interface ProcessCounts {
  /** Calls that failed by a fault of this program. */
  bugCount: number;
  /** Values under our keys in the store that were not ours. */
  badValueCount: number;
  /** Connections above what one address may have, by port. */
  readonly refusedConnections: RefusedConnections;
}

/** None yet. */
export function newProcessCounts(): ProcessCounts {
  const refusedConnections = { grpc: 0, control: 0, http: 0, monitoring: 0 };
  return { bugCount: 0, badValueCount: 0, refusedConnections };
}

/** What the metrics are read from, when they are scraped. */
export interface MetricsParts {
  readonly counters: DecisionCounters;
  readonly processCounts: ProcessCounts;
  readonly policies: PolicySource & { readonly status: PolicyStatus };
  /** True while the store is left alone after failures. */
  readonly isDegraded: () => boolean;
  /** Why requests are answered without the store now; undefined when they are not for that. */
  readonly overloadCause: () => OverloadCause | undefined;
  /** Requests in work now. */
  readonly inFlightCount: () => number;
  /** Live replicas, as far as this one knows. */
  readonly replicaCount: () => number;
  /** Keys in the embedded store; undefined with another one. */
  readonly memoryKeyCount: () => number | undefined;
  /** The gRPC port's TLS; absent where it has none. */
  readonly tlsStatus?: () => TlsStatus;
  /** The gRPC port's connections and streams; absent where there is none. */
  readonly nativeCounts?: NativeTransportCounts;
  /** Admission and its streams; absent where nobody asks for it. */
  readonly admission?: AdmissionMetricsParts & { readonly exchanges: ExchangeCounts };
  /** Readings from elsewhere; absent where nobody asks for them. */
  readonly signals?: SignalMetricsParts;
  /** What Envoys tell and are told; absent where nobody listens to them. */
  readonly control?: ControlMetricsParts;
  /** The loop of the fleet; absent where nobody takes part. */
  readonly fleet?: () => FleetLoopStatus | undefined;
  /** What operators have changed about keys; absent where nobody can. */
  readonly overrides?: Parameters<typeof overrideMetrics>[0];
  /** What operators change about policies and gates; absent where nobody can. */
  readonly policyOperations?: PolicyOperationsMetricsParts;
  /** Refusals in the log; undefined where there are none. */
  readonly refusalLog?: RefusalLog | undefined;
  /** The control plane; absent where policies are files. */
  readonly xdsStatus?: () => XdsStatus;
  /** Calls of the admin API; absent where there is none. */
  readonly adminCounts?: AdminCounts;
  /** Entries of the audit log; absent where nobody writes one. */
  readonly auditCounts?: AuditCounts;
  readonly storeKind: string;
  readonly version: string;
}

/** What there is to know of a metric beside its values. */
export interface MetricDefinition {
  readonly name: string;
  readonly kind: string;
  readonly labels: readonly string[];
  readonly help: string;
}

/** The process's metrics, in the text format of Prometheus. */
export interface Metrics {
  readonly contentType: string;
  /** All metrics as they are now. */
  render(): Promise<string>;
}

/** Metrics that say what they are. */
interface DefinedMetrics extends Metrics {
  /** All of them but those under the library's own names. */
  definitions(): readonly MetricDefinition[];
}

/**
 * All metrics; with their kinds, all that knows the library. Decisions are counted elsewhere, in
 * plain integers, and read here when scraped. Label values come from the policy and from closed
 * sets; from callers only where a policy asks for that, bounded and escaped (`hitMetrics`).
 */
export function createMetrics(parts: MetricsParts): DefinedMetrics {
  const registry = new Registry();
  // Resident memory, CPU, event loop delay, garbage collection: under the library's usual names.
  collectDefaultMetrics({ register: registry });
  addDecisionMetrics(registry, parts);
  addFailureMetrics(registry, parts);
  addOverloadMetrics(registry, parts);
  addPolicyMetrics(registry, parts);
  addStoreMetrics(registry, parts);
  addAdmissionMetrics(registry, parts);
  addSignalMetrics(registry, parts);
  addTlsMetrics(registry, parts);
  addNativeTransportMetrics(registry, parts);
  addXdsMetrics(registry, parts);
  addControlMetrics(registry, parts);
  addFleetMetrics(registry, parts);
  addOverrideMetrics(registry, parts);
  addAdminMetrics(registry, parts);
  addRefusalMetrics(registry, parts);
  addPolicyOperationsMetrics(registry, parts);
  addProcessMetrics(registry, parts);
  return {
    contentType: registry.contentType,
    definitions: () => definitionsOf(registry),
    render: () => registry.metrics(),
  };
}

function definitionsOf(registry: Registry): readonly MetricDefinition[] {
  return registry.getMetricsAsArray().flatMap((metric) => {
    const { name, help } = metric;
    if (!name.startsWith("headgate_")) return [];
    const kind =
      metric instanceof Counter ? "counter" : metric instanceof Gauge ? "gauge" : "histogram";
    // The library has them, and its types do not.
    const names: unknown = "labelNames" in metric ? metric.labelNames : [];
    const labels = Array.isArray(names) ? names.map(String) : [];
    return [{ name, kind, labels, help }];
  });
}

function addDecisionMetrics(registry: Registry, { counters, policies }: MetricsParts): void {
  addCounter(registry, {
    name: "headgate_requests_total",
    help: "Requests answered, by overall code.",
    labelNames: ["code"],
    read: (add) => {
      add(counters.okCount, { code: "ok" });
      add(counters.deniedCount, { code: "over_limit" });
    },
  });
  addCounter(registry, {
    name: "headgate_shadowed_requests_total",
    help: "Requests that passed only because SHADOW_MODE refuses nobody.",
    read: (add) => add(counters.shadowedCount),
  });
  addCounter(registry, {
    name: "headgate_decisions_total",
    help: "Descriptors decided, by rule; a series begins with its first decision.",
    labelNames: ["domain", "rule", "outcome"],
    read: (add) => {
      const policy = policies.current();
      if (policy === undefined) return;
      for (const { domain, label: rule, ok, over, shadowOver } of counters.forPolicy(policy)) {
        // A series for every rule of a large policy would cost more than it tells.
        if (ok > 0) add(ok, { domain, rule, outcome: "ok" });
        if (over > 0) add(over, { domain, rule, outcome: "over" });
        if (shadowOver > 0) add(shadowOver, { domain, rule, outcome: "shadow_over" });
      }
    },
  });
  addCounter(registry, {
    name: "headgate_override_decisions_total",
    help: "Descriptors decided by a limit that the request carried itself.",
    labelNames: ["outcome"],
    read: (add) => {
      add(counters.overrideOkCount, { outcome: "ok" });
      add(counters.overrideOverCount, { outcome: "over" });
    },
  });
  addCounter(registry, {
    name: "headgate_unmatched_descriptors_total",
    help: "Descriptors of a known domain that met no rule.",
    read: (add) => add(counters.unmatchedDescriptorCount),
  });
  addCounter(registry, {
    name: "headgate_unknown_domain_requests_total",
    help: "Requests for a domain that the policy does not hold.",
    read: (add) => add(counters.unknownDomainCount),
  });
  addCounter(registry, {
    name: "headgate_overflow_descriptors_total",
    help: "Descriptors with too new a key, sent to the bucket that such keys of a rule share.",
    labelNames: ["domain", "rule"],
    read: (add) => {
      const policy = policies.current();
      if (policy === undefined) return;
      for (const { domain, label: rule, newKeys } of counters.forPolicy(policy)) {
        if (newKeys.overflowCount > 0) add(newKeys.overflowCount, { domain, rule });
      }
    },
  });
  for (const metric of hitMetrics({ counters, policies })) addCounter(registry, metric);
  addLatency(registry, {
    name: "headgate_decision_duration_seconds",
    help: "How long decisions took, without the transport.",
    labels: {},
    unitMs: 1_000,
    counters,
  });
}

function addFailureMetrics(registry: Registry, { counters }: MetricsParts): void {
  addCounter(registry, {
    name: "headgate_failed_requests_total",
    help: "Requests answered with an error, by its code.",
    labelNames: ["error"],
    read: (add) => {
      for (const [error, count] of counters.failedByCode) add(count, { error });
    },
  });
  addCounter(registry, {
    name: "headgate_fallback_decisions_total",
    help: "Limits answered without the store, by their on_store_failure and the cause.",
    labelNames: ["mode", "error"],
    read: (add) => {
      for (const [mode, byCode] of Object.entries(counters.fallbackByMode)) {
        for (const [error, count] of byCode) add(count, { mode, error });
      }
    },
  });
  addCounter(registry, {
    name: "headgate_store_failures_total",
    help: "Calls to the store that failed, by error.",
    labelNames: ["error"],
    read: (add) => {
      for (const [error, count] of counters.storeFailedByCode) add(count, { error });
    },
  });
}

function addOverloadMetrics(registry: Registry, parts: MetricsParts): void {
  addGauge(registry, {
    name: "headgate_overloaded",
    help: "1 while this replica cannot do its work in time, or for want of memory, by cause.",
    labelNames: ["cause"],
    read: (add) => {
      const cause = parts.overloadCause();
      for (const one of overloadCauses) add(cause === one ? 1 : 0, { cause: snakeCase(one) });
    },
  });
  addGauge(registry, {
    name: "headgate_requests_in_flight",
    help: "Requests in work now.",
    read: (add) => add(parts.inFlightCount()),
  });
}

function addPolicyMetrics(registry: Registry, { policies }: MetricsParts): void {
  addGauge(registry, {
    name: "headgate_policy_info",
    help: "Always 1; the version of the active policy.",
    labelNames: ["version"],
    read: (add) => {
      const { version } = policies.status;
      if (version !== undefined) add(1, { version });
    },
  });
  addGauge(registry, {
    name: "headgate_policy_rules",
    help: "Rules of the active policy.",
    read: (add) => add(policies.status.ruleCount),
  });
  addGauge(registry, {
    name: "headgate_policy_limits",
    help: "Limits of all rules of the active policy.",
    read: (add) => add(policies.status.limitCount),
  });
  addCounter(registry, {
    name: "headgate_policy_loads_total",
    help: "Policies loaded and refused, the first one included.",
    labelNames: ["result"],
    read: (add) => {
      add(policies.status.loadedCount, { result: "loaded" });
      add(policies.status.refusedCount, { result: "refused" });
    },
  });
  addGauge(registry, {
    name: "headgate_policy_loaded_timestamp_seconds",
    help: "When the active policy was loaded.",
    read: (add) => add((policies.status.loadedEpochUs ?? 0) / 1_000_000),
  });
  addGauge(registry, {
    name: "headgate_policy_stale",
    help: "1 while the newest policy files are refused and an older policy is active.",
    read: (add) => add(policies.status.lastProblem === undefined ? 0 : 1),
  });
}

function addStoreMetrics(registry: Registry, parts: MetricsParts): void {
  const { counters } = parts;
  addCounter(registry, {
    name: "headgate_store_batches_total",
    help: "Calls to the store; each decides the requests of one turn of the event loop.",
    read: (add) => add(counters.batchCount),
  });
  addCounter(registry, {
    name: "headgate_store_batch_requests_total",
    help: "Requests in those calls, identical ones of a turn counted once.",
    read: (add) => add(counters.batchRequestCount),
  });
  addCounter(registry, {
    name: "headgate_store_batch_charges_total",
    help: "Charges of those requests, one a limit.",
    read: (add) => add(counters.batchChargeCount),
  });
  addCounter(registry, {
    name: "headgate_coalesced_requests_total",
    help: "Requests decided together with an identical one, which the store was asked once.",
    read: (add) => add(counters.coalescedCount),
  });
  addCounter(registry, {
    name: "headgate_remembered_refusals_total",
    help: "Requests denied without asking the store, which had refused the same a moment ago.",
    read: (add) => add(counters.refusedFromMemoryCount),
  });
  addGauge(registry, {
    name: "headgate_store_circuit_open",
    help: "1 while the store is left alone after repeated failures.",
    labelNames: ["store"],
    read: (add) => add(parts.isDegraded() ? 1 : 0, { store: parts.storeKind }),
  });
  addGauge(registry, {
    name: "headgate_live_replicas",
    help: "Replicas that share the limits, as far as this one knows.",
    read: (add) => add(parts.replicaCount()),
  });
  if (parts.memoryKeyCount() === undefined) return;
  addGauge(registry, {
    name: "headgate_memory_store_keys",
    help: "Keys in the embedded store.",
    read: (add) => add(parts.memoryKeyCount() ?? 0),
  });
}

function addAdmissionMetrics(registry: Registry, { admission }: MetricsParts): void {
  if (admission === undefined) return;
  const { gauges, counters, histograms } = admissionMetrics(admission);
  const streams = exchangeMetrics(admission.exchanges);
  for (const gauge of [...gauges, ...streams.gauges]) addGauge(registry, gauge);
  for (const counter of [...counters, ...streams.counters]) addCounter(registry, counter);
  for (const histogram of histograms) addHistogram(registry, histogram);
}

function addNativeTransportMetrics(registry: Registry, { nativeCounts }: MetricsParts): void {
  if (nativeCounts === undefined) return;
  for (const counter of nativeTransportMetrics(nativeCounts)) addCounter(registry, counter);
}

function addTlsMetrics(registry: Registry, { tlsStatus }: MetricsParts): void {
  if (tlsStatus === undefined) return;
  const { gauges, counters } = tlsMetrics(tlsStatus);
  for (const gauge of gauges) addGauge(registry, gauge);
  for (const counter of counters) addCounter(registry, counter);
}

function addXdsMetrics(registry: Registry, { xdsStatus }: MetricsParts): void {
  if (xdsStatus === undefined) return;
  const { gauges, counters } = xdsMetrics(xdsStatus);
  for (const gauge of gauges) addGauge(registry, gauge);
  for (const counter of counters) addCounter(registry, counter);
}

function addSignalMetrics(registry: Registry, { signals }: MetricsParts): void {
  if (signals === undefined) return;
  const { gauges, counters } = signalMetrics(signals);
  for (const gauge of gauges) addGauge(registry, gauge);
  for (const counter of counters) addCounter(registry, counter);
}

function addFleetMetrics(registry: Registry, { fleet }: MetricsParts): void {
  if (fleet === undefined) return;
  const { gauges, counters } = fleetMetrics(fleet);
  for (const gauge of gauges) addGauge(registry, gauge);
  for (const counter of counters) addCounter(registry, counter);
}

function addAdminMetrics(registry: Registry, { adminCounts, auditCounts }: MetricsParts): void {
  if (auditCounts !== undefined) addCounter(registry, auditMetric(auditCounts));
  if (adminCounts === undefined) return;
  for (const counter of adminMetrics(adminCounts)) addCounter(registry, counter);
}

function addRefusalMetrics(registry: Registry, { refusalLog }: MetricsParts): void {
  if (refusalLog !== undefined) addCounter(registry, refusalLogMetric(refusalLog));
}

function addOverrideMetrics(registry: Registry, { overrides }: MetricsParts): void {
  if (overrides === undefined) return;
  for (const gauge of overrideMetrics(overrides)) addGauge(registry, gauge);
}

function addPolicyOperationsMetrics(registry: Registry, parts: MetricsParts): void {
  if (parts.policyOperations === undefined) return;
  const { counters, gauges } = policyOperationsMetrics(parts.policyOperations);
  for (const counter of counters) addCounter(registry, counter);
  for (const gauge of gauges) addGauge(registry, gauge);
}

function addControlMetrics(registry: Registry, { control }: MetricsParts): void {
  if (control === undefined) return;
  const { gauges, counters } = controlMetrics(control);
  for (const gauge of gauges) addGauge(registry, gauge);
  for (const counter of counters) addCounter(registry, counter);
}

function addProcessMetrics(registry: Registry, { processCounts, version }: MetricsParts): void {
  addGauge(registry, {
    name: "headgate_build_info",
    help: "Always 1; the version of this program.",
    labelNames: ["version"],
    read: (add) => add(1, { version }),
  });
  addCounter(registry, {
    name: "headgate_internal_errors_total",
    help: "Calls that failed by a fault of this program.",
    read: (add) => add(processCounts.bugCount),
  });
  addCounter(registry, {
    name: "headgate_store_bad_values_total",
    help: "Values under our keys in the store that were not ours; each counted as unused.",
    read: (add) => add(processCounts.badValueCount),
  });
  addCounter(registry, {
    name: "headgate_refused_connections_total",
    help: "Connections above what one address may have open, closed at once, by port.",
    labelNames: ["port"],
    read: (add) => {
      for (const [port, count] of Object.entries(processCounts.refusedConnections)) {
        add(count, { port });
      }
    },
  });
}
