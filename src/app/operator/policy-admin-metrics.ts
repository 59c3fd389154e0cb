import type { ReadMetric } from "../base/metric-kinds.js";
import { type OpenPolicies, policyOrigins } from "../policy/policies.js";
import type { PolicyOperations } from "./policy-admin-open.js";

/** What these metrics are read from. */
export interface PolicyOperationsMetricsParts {
  readonly policies: Pick<OpenPolicies, "origin">;
  readonly operations: {
    readonly gates: Pick<PolicyOperations["gates"], "count" | "unreadableCount">;
    readonly shadow: Pick<PolicyOperations["shadow"], "divisor" | "totals">;
  };
}

/** The metrics of what operators change about policies and gates. */
export function policyOperationsMetrics(parts: PolicyOperationsMetricsParts): {
  readonly counters: readonly ReadMetric[];
  readonly gauges: readonly ReadMetric[];
} {
  const { policies, operations } = parts;
  const { gates, shadow } = operations;
  return {
    counters: [
      {
        name: "headgate_shadow_calls_total",
        help: "Calls that the shadow policy decided as well, by outcome.",
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
        help: "Calls that it was not asked about: they came too fast, or the store was slow.",
        read: (add) => add(shadow.totals.unseenCount),
      },
    ],
    gauges: [
      {
        name: "headgate_policy_source",
        help: "1 for where the active policy comes from.",
        labelNames: ["source"],
        read: (add) => {
          for (const source of policyOrigins) add(source === policies.origin ? 1 : 0, { source });
        },
      },
      {
        name: "headgate_shadow_sample_ratio",
        help: "Part of the calls that the shadow policy decides; 0: there is none.",
        read: (add) => add(shadow.divisor === 0 ? 0 : 1 / shadow.divisor),
      },
      {
        name: "headgate_gates_changed",
        help: "Services whose gates have thresholds of an operator in place of their policy's.",
        read: (add) => add(gates.count),
      },
      {
        name: "headgate_gate_records_unreadable",
        help: "Thresholds in the store that are none which this version reads: left out.",
        read: (add) => add(gates.unreadableCount),
      },
    ],
  };
}
