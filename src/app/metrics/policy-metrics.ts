import { byLabel, type MetricGroup, type ReadMetric } from "../base/metrics.js";
import type { PolicyStatus } from "../policy/active-policy.js";
import { type OpenPolicies, policyOrigins } from "../policy/policies.js";
import type { XdsStatus } from "../policy/policy-xds.js";

/** Counts of the shadow policy on this replica since the process began. */
interface ShadowTotals {
  readonly comparedCount: number;
  readonly newlyDeniedCount: number;
  readonly newlyAllowedCount: number;
  readonly unseenCount: number;
}

/** Returns the metrics of operators' changes of policies and gates. */
export function policyOperationsMetrics(parts: {
  readonly policies: Pick<OpenPolicies, "origin">;
  readonly gates: { readonly count: number; readonly unreadableCount: number };
  readonly shadow: { readonly divisor: number; readonly totals: ShadowTotals };
}): MetricGroup {
  const { policies, gates, shadow } = parts;
  return {
    counters: [
      {
        name: "headgate_shadow_calls_total",
        help: "Calls that the shadow policy also decided, by outcome.",
        labelNames: ["outcome"],
        read: (add) => {
          const { comparedCount, newlyDeniedCount, newlyAllowedCount } = shadow.totals;
          add(newlyDeniedCount, { outcome: "newly_denied" });
          add(newlyAllowedCount, { outcome: "newly_allowed" });
          add(comparedCount - newlyDeniedCount - newlyAllowedCount, { outcome: "same" });
        },
      },
      {
        name: "headgate_shadow_unseen_calls_total",
        help: "Calls that the shadow policy did not decide, because of their rate or a slow store.",
        read: (add) => add(shadow.totals.unseenCount),
      },
    ],
    gauges: [
      {
        name: "headgate_policy_source",
        help: "1 for the source of the active policy.",
        labelNames: ["source"],
        read: (add) => {
          for (const source of policyOrigins) add(source === policies.origin ? 1 : 0, { source });
        },
      },
      {
        name: "headgate_shadow_sample_ratio",
        help: "Ratio of calls that the shadow policy decides; 0 without one.",
        read: (add) => add(shadow.divisor === 0 ? 0 : 1 / shadow.divisor),
      },
      {
        name: "headgate_gates_changed",
        help: "Services whose gate thresholds an operator has replaced.",
        read: (add) => add(gates.count),
      },
      {
        name: "headgate_gate_records_unreadable",
        help: "Gate thresholds in the store that this version cannot read; skipped.",
        read: (add) => add(gates.unreadableCount),
      },
    ],
  };
}

/** Returns the metrics of the active policy. */
export function policyMetrics(policies: { readonly status: PolicyStatus }): MetricGroup {
  return {
    counters: [
      {
        name: "headgate_policy_loads_total",
        help: "Policies loaded and refused, including the first.",
        ...byLabel("result", () => {
          const { loadedCount: loaded, refusedCount: refused } = policies.status;
          return Object.entries({ loaded, refused });
        }),
      },
    ],
    gauges: [
      {
        name: "headgate_policy_info",
        help: "Always 1; the label is the version of the active policy.",
        labelNames: ["version"],
        read: (add) => {
          const { version } = policies.status;
          if (version !== undefined) add(1, { version });
        },
      },
      {
        name: "headgate_policy_rules",
        help: "Rules of the active policy.",
        read: (add) => add(policies.status.ruleCount),
      },
      {
        name: "headgate_policy_limits",
        help: "Limits of all rules of the active policy.",
        read: (add) => add(policies.status.limitCount),
      },
      {
        name: "headgate_policy_loaded_timestamp_seconds",
        help: "Time at which the active policy was loaded.",
        read: (add) => add((policies.status.loadedEpochUs ?? 0) / 1_000_000),
      },
      {
        name: "headgate_policy_stale",
        help: "1 while the newest policy is refused and an older one is active.",
        read: (add) => add(policies.status.lastProblem === undefined ? 0 : 1),
      },
    ],
  };
}

/** Returns the metrics of the control plane. Used only if the policy comes from one. */
export function xdsMetrics(status: () => XdsStatus): MetricGroup {
  return { gauges: gauges(status), counters: counters(status) };
}

function gauges(status: () => XdsStatus): readonly ReadMetric[] {
  return [
    {
      name: "headgate_xds_connected",
      help: "1 while the control plane is connected.",
      read: (add) => add(status().isConnected ? 1 : 0),
    },
    {
      name: "headgate_xds_last_update_timestamp_seconds",
      help: "Time at which the control plane's last set was accepted, changed or not.",
      read: (add) => add((status().confirmedEpochUs ?? 0) / 1_000_000),
    },
  ];
}

function counters(status: () => XdsStatus): readonly ReadMetric[] {
  return [
    {
      name: "headgate_xds_responses_total",
      help: "Sets from the control plane, by answer; ignored: superseded or not requested.",
      labelNames: ["answer"],
      read: (add) => {
        const { ackCount, nackCount, ignoredCount } = status();
        add(ackCount, { answer: "ack" });
        add(nackCount, { answer: "nack" });
        add(ignoredCount, { answer: "ignored" });
      },
    },
    {
      name: "headgate_xds_disconnects_total",
      help: "Control plane streams that ended and connection attempts that failed, by reason.",
      ...byLabel("reason", () => status().endCounts),
    },
  ];
}
