import { snakeCase } from "../../core/base/text.js";
import { type Limit, limitsOf } from "../../core/limits/limit.js";
import { type DecisionCounters, latencyBoundsMs } from "../../decide/rate-limit/counters.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import { type OverloadCause, overloadCauses } from "../../decide/rate-limit/pressure.js";
import {
  type AddSeries,
  byLabel,
  type Labels,
  type MetricGroup,
  type ReadHistogram,
  type ReadMetric,
} from "../base/metrics.js";
import { hitMetrics } from "./stats-hit-metrics.js";

interface DecisionMetricsParts {
  readonly counters: DecisionCounters;
  readonly policies: PolicySource;
  /** Overload because of which requests are now answered without the store. Undefined: none. */
  readonly overloadCause: () => OverloadCause | undefined;
  /** Number of requests in progress now. */
  readonly inFlightCount: () => number;
}

/**
 * Returns the metrics of decisions. They are counted elsewhere, in plain integers. Label values
 * come from the policy and from closed sets. Values of callers appear only if a policy asks for it,
 * bounded and escaped (`hitMetrics`).
 */
export function decisionMetrics(parts: DecisionMetricsParts): MetricGroup {
  return {
    counters: [...decisionCounters(parts), ...hitMetrics(parts), ...failureCounters(parts)],
    gauges: [...overloadGauges(parts), ...limitGauges(parts)],
    histograms: [
      latencyHistogram(parts.counters, {
        name: "headgate_decision_duration_seconds",
        unitMs: 1_000,
      }),
    ],
  };
}

function decisionCounters({ counters, policies }: DecisionMetricsParts): readonly ReadMetric[] {
  return [
    {
      name: "headgate_requests_total",
      help: "Requests answered, by overall code.",
      ...byLabel("code", () =>
        Object.entries({ ok: counters.okCount, over_limit: counters.deniedCount }),
      ),
    },
    {
      name: "headgate_shadowed_requests_total",
      help: "Requests that passed only because of SHADOW_MODE.",
      read: (add) => add(counters.shadowedCount),
    },
    {
      name: "headgate_decisions_total",
      help: "Descriptors decided, by rule; a series starts with its first decision.",
      labelNames: ["domain", "rule", "outcome"],
      read: (add) => {
        const policy = policies.current();
        if (policy === undefined) return;
        for (const counted of counters.forPolicy(policy)) {
          const { domain, label: rule, ok, delayed, over, shadowOver } = counted;
          // A series for every rule of a large policy would cost more than it is worth.
          if (ok > 0) add(ok, { domain, rule, outcome: "ok" });
          if (delayed > 0) add(delayed, { domain, rule, outcome: "delayed" });
          if (over > 0) add(over, { domain, rule, outcome: "over" });
          if (shadowOver > 0) add(shadowOver, { domain, rule, outcome: "shadow_over" });
        }
      },
    },
    {
      name: "headgate_override_decisions_total",
      help: "Descriptors decided by a limit in the request itself.",
      ...byLabel("outcome", () =>
        Object.entries({ ok: counters.overrideOkCount, over: counters.overrideOverCount }),
      ),
    },
    {
      name: "headgate_unmatched_descriptors_total",
      help: "Descriptors of a known domain that matched no rule.",
      read: (add) => add(counters.unmatchedDescriptorCount),
    },
    {
      name: "headgate_unknown_domain_requests_total",
      help: "Requests for a domain that the policy does not have.",
      read: (add) => add(counters.unknownDomainCount),
    },
    {
      name: "headgate_overflow_descriptors_total",
      help: "Descriptors with too many new keys for a rule, charged to a shared bucket.",
      labelNames: ["domain", "rule"],
      read: (add) => {
        const policy = policies.current();
        if (policy === undefined) return;
        for (const { domain, label: rule, newKeys } of counters.forPolicy(policy)) {
          if (newKeys.overflowCount > 0) add(newKeys.overflowCount, { domain, rule });
        }
      },
    },
  ];
}

function failureCounters({ counters }: DecisionMetricsParts): readonly ReadMetric[] {
  return [
    {
      name: "headgate_failed_requests_total",
      help: "Requests answered with an error, by its code.",
      ...byLabel("error", () => counters.failedByCode),
    },
    {
      name: "headgate_fallback_decisions_total",
      help: "Limits decided without the store, by on_store_failure and cause.",
      labelNames: ["mode", "error"],
      read: (add) => {
        for (const [mode, byCode] of Object.entries(counters.fallbackByMode)) {
          for (const [error, count] of byCode) add(count, { mode, error });
        }
      },
    },
    {
      name: "headgate_store_failures_total",
      help: "Failed store calls, by error.",
      ...byLabel("error", () => counters.storeFailedByCode),
    },
  ];
}

function overloadGauges(parts: DecisionMetricsParts): readonly ReadMetric[] {
  return [
    {
      name: "headgate_overloaded",
      help: "1 while this replica is overloaded, by cause.",
      labelNames: ["cause"],
      read: (add) => {
        const cause = parts.overloadCause();
        for (const one of overloadCauses) add(cause === one ? 1 : 0, { cause: snakeCase(one) });
      },
    },
    {
      name: "headgate_requests_in_flight",
      help: "Requests in flight.",
      read: (add) => add(parts.inFlightCount()),
    },
  ];
}

/**
 * Returns the limits of rules that have decided, as in the policy, without overrides: each of these
 * is for keys of callers, of which a rule has many.
 */
function limitGauges({ counters, policies }: DecisionMetricsParts): readonly ReadMetric[] {
  const labelNames = ["domain", "rule", "limit"];
  const readEach = (add: AddSeries, numberOf: (limit: Limit) => number): void => {
    const policy = policies.current();
    if (policy === undefined) return;
    // Rules may share a label, and a rule's limits a name: the first one has the series.
    const seen = new Set<string>();
    for (const [index, { domain, label: rule, ...counts }] of counters
      .forPolicy(policy)
      .entries()) {
      if (counts.ok + counts.over + counts.shadowOver === 0) continue;
      const limits = limitsOf(policy.rules[index] ?? { effect: { kind: "none" } });
      for (const [position, limit] of limits.entries()) {
        const labels = { domain, rule, limit: limit.name ?? String(position + 1) };
        const id = JSON.stringify(labels);
        if (!seen.has(id)) add(numberOf(limit), labels);
        seen.add(id);
      }
    }
  };
  return [
    {
      name: "headgate_rule_limit_requests_per_second",
      help:
        "Configured rate of a limit, by its name or else its position in the rule; a series " +
        "starts with the rule's first decision.",
      labelNames,
      read: (add) => readEach(add, ({ hits, periodUs }) => hits / (periodUs / 1_000_000)),
    },
    {
      name: "headgate_rule_limit_burst_requests",
      help: "Configured burst of a limit: how many requests an unused bucket takes at once.",
      labelNames,
      read: (add) => readEach(add, ({ burst }) => burst),
    },
  ];
}

/**
 * Returns the histogram of decision times, which are kept in milliseconds.
 *
 * @param unitMs unit of the series, in milliseconds: 1,000 for seconds
 */
export function latencyHistogram(
  counters: DecisionCounters,
  {
    name,
    unitMs,
    labels = {},
  }: { readonly name: string; readonly unitMs: number; readonly labels?: Labels },
): ReadHistogram {
  return {
    name,
    help: "Decision latency, without the transport.",
    labelNames: Object.keys(labels),
    unit: unitMs,
    read: (add) => {
      const { latencyCounts: counts, latencySumMs: sum, latencyExemplars: exemplars } = counters;
      add({ bounds: latencyBoundsMs, counts, sum, exemplars }, labels);
    },
  };
}

interface StoreMetricsParts {
  readonly counters: DecisionCounters;
  /** True while the store is not used after failures. */
  readonly isDegraded: () => boolean;
  /** Number of live replicas, as known to this one. */
  readonly replicaCount: () => number;
  /** Keys in the embedded store. Undefined with another store. */
  readonly memoryKeyCount: () => number | undefined;
  readonly storeKind: string;
}

/** Returns the metrics of the store, as seen by decisions. */
export function storeMetrics(parts: StoreMetricsParts): MetricGroup {
  const { counters } = parts;
  return {
    counters: [
      {
        name: "headgate_store_batches_total",
        help: "Store calls; each decides the requests of one event loop turn.",
        read: (add) => add(counters.batchCount),
      },
      {
        name: "headgate_store_batch_requests_total",
        help: "Requests in store calls; identical requests of a turn count once.",
        read: (add) => add(counters.batchRequestCount),
      },
      {
        name: "headgate_store_batch_charges_total",
        help: "Charges in store calls, one for each limit of a request.",
        read: (add) => add(counters.batchChargeCount),
      },
      {
        name: "headgate_coalesced_requests_total",
        help: "Requests that shared the store decision of an identical request.",
        read: (add) => add(counters.coalescedCount),
      },
      {
        name: "headgate_over_limit_cache_denials_total",
        help: "Requests denied from the over-limit cache, without a store call.",
        read: (add) => add(counters.refusedFromMemoryCount),
      },
    ],
    gauges: [
      {
        name: "headgate_store_circuit_open",
        help: "1 while the store is not used after repeated failures.",
        labelNames: ["store"],
        read: (add) => add(parts.isDegraded() ? 1 : 0, { store: parts.storeKind }),
      },
      {
        name: "headgate_live_replicas",
        help: "Replicas that share the limits, as known to this one.",
        read: (add) => add(parts.replicaCount()),
      },
      ...(parts.memoryKeyCount() === undefined
        ? []
        : [
            {
              name: "headgate_memory_store_keys",
              help: "Keys in the embedded store.",
              read: (add: AddSeries) => add(parts.memoryKeyCount() ?? 0),
            },
          ]),
    ],
  };
}
