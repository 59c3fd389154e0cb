import { gateStates } from "../../core/admission/gate.js";
import { loadSignals } from "../../core/admission/load.js";
import { type Priority, priorities } from "../../core/admission/priority.js";
import { refusalCauses } from "../../core/admission/refusal.js";
import { snakeCase } from "../../core/base/text.js";
import type { AdmissionCounts } from "../../decide/admission/admission-counts.js";
import type { ServiceAdmission } from "../../decide/admission/service-admission.js";
import { otherKey } from "../../decide/admission/service-pools.js";
import type { Labels, MetricGroup, ReadHistogram, ReadMetric } from "../base/metrics.js";

interface AdmissionMetricsParts {
  /** Services of the active policy. */
  readonly services: () => Iterable<ServiceAdmission>;
  /** Number of requests for services that the policy does not have. */
  readonly unknownCount: () => number;
  /** Monotonic time, in milliseconds. */
  readonly nowMs: () => number;
}

/** Returns the metrics of admission, by kind. All labels are policy names, or from closed sets. */
export function admissionMetrics(parts: AdmissionMetricsParts): MetricGroup {
  return {
    gauges: [...permitGauges(parts), ...wallGauges(parts), ...signalGauges(parts)],
    counters: countersOf(parts),
    histograms: histogramsOf(parts),
  };
}

/** Reads use and maximum of permits at the same time: one without the other says nothing. */
function permitGauges({ services, nowMs }: AdmissionMetricsParts): readonly ReadMetric[] {
  return [
    {
      name: "headgate_admission_inflight",
      help: "Permits in use on this replica, by service and, if the limit is split, by key.",
      labelNames: ["service", "key"],
      read: (add) => {
        for (const { labels, inFlight } of poolSums(services(), nowMs())) add(inFlight, labels);
      },
    },
    {
      name: "headgate_admission_inflight_max",
      help: "Maximum permits in use on this replica; +Inf without a limit.",
      labelNames: ["service", "key"],
      read: (add) => {
        for (const { labels, inFlightMax } of poolSums(services(), nowMs())) {
          add(inFlightMax, labels);
        }
      },
    },
    {
      name: "headgate_admission_delayed_requests",
      help: "Requests that a rate limit currently holds (`over: delay`).",
      labelNames: ["service"],
      read: (add) => {
        for (const { name: service, policy, counts } of services()) {
          if (policy.rateLimit?.inExtProc === true) add(counts.delayedNow, { service });
        }
      },
    },
    {
      name: "headgate_admission_queue_depth",
      help: "Requests that wait for a permit.",
      labelNames: ["service", "key"],
      read: (add) => {
        for (const { labels, waiting } of poolSums(services(), nowMs())) add(waiting, labels);
      },
    },
  ];
}

interface PoolSum {
  readonly labels: Labels;
  inFlight: number;
  inFlightMax: number;
  waiting: number;
}

/** Sums pools by key. Keys that the policy does not name are one series of a service. */
function poolSums(services: Iterable<ServiceAdmission>, nowMs: number): readonly PoolSum[] {
  const sums: PoolSum[] = [];
  for (const { name: service, policy, pools } of services) {
    if (policy.admission === undefined) continue;
    const byKey = new Map<string, PoolSum>();
    for (const { label: key, pool } of pools.all()) {
      const labels = { service, key };
      const sum = byKey.get(key) ?? { labels, inFlight: 0, inFlightMax: 0, waiting: 0 };
      sum.inFlight += pool.inUseCount();
      sum.inFlightMax += pool.limit(nowMs);
      sum.waiting += pool.waitingCount;
      byKey.set(key, sum);
    }
    sums.push(...byKey.values());
  }
  return sums;
}

/** Returns the gauges of the checks before permits: the expected wait, the gate, the throttle. */
function wallGauges({ services, nowMs }: AdmissionMetricsParts): readonly ReadMetric[] {
  return [
    {
      name: "headgate_admission_reject_probability",
      help: "The ratio of requests that the expected wait currently refuses.",
      labelNames: ["service"],
      read: (add) => {
        for (const one of services()) {
          if (one.policy.admission?.estimatedWait?.sigmoid === undefined) continue;
          add(one.rejectRatio(nowMs()), { service: one.name });
        }
      },
    },
    {
      name: "headgate_admission_gate_state",
      help: "1 for the current state of a service's gate.",
      labelNames: ["service", "state"],
      read: (add) => {
        for (const { name: service, blocks } of services()) {
          const gate = blocks.admission?.gate;
          if (gate === undefined) continue;
          for (const state of gateStates) add(gate.state === state ? 1 : 0, { service, state });
        }
      },
    },
    {
      name: "headgate_admission_gate_pass_ratio",
      help: "The ratio of requests that a service's gate admits.",
      labelNames: ["service"],
      read: (add) => {
        for (const { name: service, blocks } of services()) {
          const gate = blocks.admission?.gate;
          if (gate !== undefined) add(gate.passRatio, { service });
        }
      },
    },
    {
      name: "headgate_admission_gate_threshold_ratio",
      help: "Reject probability below which a gate opens and above which it closes.",
      labelNames: ["service", "threshold"],
      read: (add) => {
        for (const { name: service, blocks } of services()) {
          const settings = blocks.admission?.gate?.settings;
          if (settings === undefined) continue;
          add(settings.openBelowRatio, { service, threshold: "open_below" });
          add(settings.closeAboveRatio, { service, threshold: "close_above" });
        }
      },
    },
    {
      name: "headgate_admission_throttle_probability",
      help: "The ratio of a service's requests that its throttle currently refuses.",
      labelNames: ["service"],
      read: (add) => {
        for (const { name: service, blocks } of services()) {
          const throttles = blocks.admission?.throttles;
          if (throttles !== undefined) add(throttles.rejectRatio(nowMs()), { service });
        }
      },
    },
  ];
}

function signalGauges({ services, nowMs }: AdmissionMetricsParts): readonly ReadMetric[] {
  return [
    {
      name: "headgate_admission_load_ratio",
      help: "Known load signals of a service; 1 is full.",
      labelNames: ["service", "signal"],
      read: (add) => {
        for (const one of services()) {
          const { name: service, blocks } = one;
          if (blocks.admission === undefined) continue;
          for (const signal of loadSignals) {
            const ratio =
              signal === "inFlight"
                ? one.occupancyRatio(nowMs())
                : blocks.admission.health?.signals.signal(signal, nowMs());
            if (ratio !== undefined) add(ratio, { service, signal: snakeCase(signal) });
          }
        }
      },
    },
    {
      name: "headgate_admission_law",
      help: "Internal values of a service's concurrency law, by the names that the law uses.",
      labelNames: ["service", "key", "fact"],
      read: (add) => {
        for (const { name: service, pools } of services()) {
          for (const { label: key, pool } of pools.all()) {
            // Algorithms of keys not in the policy would be one series with many values.
            if (key === otherKey) continue;
            for (const [fact, value] of Object.entries(pool.law?.facts() ?? {})) {
              add(value, { service, key, fact: snakeCase(fact) });
            }
          }
        }
      },
    },
  ];
}

function countersOf({ services, unknownCount }: AdmissionMetricsParts): readonly ReadMetric[] {
  return [
    {
      name: "headgate_admission_decisions_total",
      help:
        "Requests admitted and refused, by class and cause; dry: would be refused " +
        "without a dry run.",
      labelNames: ["service", "priority", "decision", "cause", "dry_run"],
      read: (add) => {
        for (const { name: service, counts } of services()) {
          for (const priority of priorities) addDecisions(add, counts, { service, priority });
        }
      },
    },
    {
      name: "headgate_admission_outcomes_total",
      help: "Outcomes of requests that held a permit, as concurrency laws see them.",
      labelNames: ["service", "outcome"],
      read: (add) => {
        for (const { name: service, counts } of services()) {
          for (const [outcome, value] of Object.entries(counts.outcomes)) {
            add(value, { service, outcome });
          }
        }
      },
    },
    ofEachService(services, {
      name: "headgate_admission_bypassed_total",
      help: "Requests on bypassed paths, which are neither counted nor refused.",
      value: (counts) => counts.bypassedCount,
    }),
    ofEachService(services, {
      name: "headgate_admission_failure_mode_allowed_total",
      help:
        "Requests admitted without a decision while this replica was overloaded " +
        "(`ownOverload: allow`).",
      value: (counts) => counts.failureModeAllowedCount,
    }),
    ofEachService(services, {
      name: "headgate_admission_client_cancelled_total",
      help: "Requests whose caller gave up before a decision, most of them in a queue.",
      value: (counts) => counts.leftCount,
    }),
    ofEachService(services, {
      name: "headgate_admission_leases_expired_total",
      help: "Permits whose lease expired before their ext_proc stream ended.",
      value: (counts) => counts.overdueCount,
    }),
    ofEachService(services, {
      name: "headgate_admission_rate_limit_failures_total",
      help: "Requests that passed because their rate limit could not be checked.",
      value: (counts) => counts.rateLimitFailedCount,
    }),
    ofEachService(services, {
      name: "headgate_admission_dry_run_delayed_total",
      help: "Requests that a rate limit would have delayed without a dry run.",
      value: (counts) => counts.dryDelayedCount,
    }),
    {
      name: "headgate_admission_unknown_service_requests_total",
      help: "Requests that passed because the policy has no service for them.",
      read: (add) => add(unknownCount()),
    },
  ];
}

function ofEachService(
  services: AdmissionMetricsParts["services"],
  {
    name,
    help,
    value,
  }: Pick<ReadMetric, "name" | "help"> & {
    readonly value: (counts: AdmissionCounts) => number;
  },
): ReadMetric {
  return {
    name,
    help,
    labelNames: ["service"],
    read: (add) => {
      for (const { name: service, counts } of services()) add(value(counts), { service });
    },
  };
}

/** Adds decisions. A series begins with its first one: each service has nearly a hundred. */
function addDecisions(
  add: (value: number, labels: Labels) => void,
  counts: AdmissionCounts,
  { service, priority }: { readonly service: string; readonly priority: Priority },
): void {
  const of = { service, priority };
  const admitted = counts.admitted[priority];
  if (admitted > 0) add(admitted, { ...of, decision: "admitted", cause: "", dry_run: "false" });
  for (const one of refusalCauses) {
    const cause = snakeCase(one);
    const refused = counts.refused.of(priority, one);
    const dryRefused = counts.dryRefused.of(priority, one);
    if (refused > 0) add(refused, { ...of, decision: "refused", cause, dry_run: "false" });
    if (dryRefused > 0) add(dryRefused, { ...of, decision: "refused", cause, dry_run: "true" });
  }
}

function histogramsOf({ services }: AdmissionMetricsParts): readonly ReadHistogram[] {
  return [
    {
      name: "headgate_admission_wait_seconds",
      help: "Wait of requests that were admitted from a queue.",
      labelNames: ["service"],
      unit: 1_000,
      read: (add) => {
        for (const { name: service, counts } of services()) add(counts.waits, { service });
      },
    },
    {
      name: "headgate_admission_rate_limit_delay_seconds",
      help: "Delay of requests that a rate limit held until they fitted (`over: delay`).",
      labelNames: ["service"],
      unit: 1_000,
      read: (add) => {
        for (const { name: service, counts } of services()) add(counts.delays, { service });
      },
    },
    {
      name: "headgate_admission_capacity",
      help: "Maximum permits in use on this replica, sampled once a second.",
      labelNames: ["service"],
      unit: 1,
      read: (add) => {
        for (const { name: service, counts } of services()) add(counts.capacity, { service });
      },
    },
  ];
}
