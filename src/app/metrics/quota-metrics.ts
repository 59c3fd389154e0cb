import { microHzPerHz } from "../../core/quota/quota.js";
import type { QuotaLeaseState } from "../../decide/quota/driven-pool.js";
import type { QuotaRegistry } from "../../decide/quota/quota-registry.js";
import type { QuotaPoolView } from "../../decide/quota/quota-view.js";
import { byLabel, type MetricGroup, type ReadMetric } from "../base/metrics.js";

/** Returns the metrics of quotas. Labels are from closed sets or the policy: no callers' values. */
export function quotaMetrics(registry: QuotaRegistry): MetricGroup {
  return { gauges: gauges(registry), counters: counters(registry) };
}

const leaseStates: readonly QuotaLeaseState[] = ["claiming", "leased", "unrenewed", "lost"];

function gauges(registry: QuotaRegistry): readonly ReadMetric[] {
  return [
    {
      name: "headgate_quota_streams",
      help: "Envoy streams that report quota usage to this replica.",
      read: (add) => add(registry.sessionCount),
    },
    {
      name: "headgate_quota_holders",
      help: "Buckets of Envoys with a share on this replica, including expiring ones.",
      read: (add) => add(registry.holderCount),
    },
    {
      name: "headgate_quota_pools",
      help: "Limits, or sets of limits, that quotas are assigned from on this replica.",
      read: (add) => add(registry.poolCount),
    },
    {
      name: "headgate_quota_leases",
      help: "Limited pools by lease state of this replica; unrenewed: its last lease.",
      labelNames: ["state"],
      read: (add) => {
        const counts = new Map(leaseStates.map((state) => [state, 0]));
        for (const { mode, lease } of registry.view().pools()) {
          if (mode === "limited") counts.set(lease.state, (counts.get(lease.state) ?? 0) + 1);
        }
        for (const [state, count] of counts) add(count, { state });
      },
    },
    rateGauge(registry, {
      name: "headgate_quota_assigned_rate",
      help: "Maximum hits per second that Envoys of this replica may admit, by quota.",
      of: ({ heldMicroHz }) => heldMicroHz,
    }),
    rateGauge(registry, {
      name: "headgate_quota_demand_rate",
      help:
        "Hits per second requested from Envoys of this replica, by their last reports, by " +
        "quota.",
      of: ({ demandMicroHz }) => demandMicroHz,
    }),
  ];
}

function rateGauge(
  registry: QuotaRegistry,
  row: Pick<ReadMetric, "name" | "help"> & { readonly of: (pool: QuotaPoolView) => number },
): ReadMetric {
  return {
    name: row.name,
    help: row.help,
    labelNames: ["quota"],
    read: (add) => {
      const rates = new Map<string, number>();
      for (const pool of registry.view().pools()) {
        // A pool that several quotas share counts for the first of them.
        const quota = pool.quotas[0] ?? "";
        rates.set(quota, (rates.get(quota) ?? 0) + row.of(pool));
      }
      for (const [quota, rate] of rates) add(rate / microHzPerHz, { quota });
    },
  };
}

function counters({ counts }: QuotaRegistry): readonly ReadMetric[] {
  return [
    {
      name: "headgate_quota_reports_total",
      help: "Usage reports of buckets.",
      read: (add) => add(counts.reportCount),
    },
    {
      name: "headgate_quota_assignments_total",
      help: "Assignments to buckets: a token bucket, allow all, deny all, or forget.",
      ...byLabel("kind", () => counts.reported),
    },
    {
      name: "headgate_quota_unusual_reports_total",
      help:
        "Usage above the assignment of an Envoy, or above its share without one, " +
        "which was cut; and Envoys with the name of another live Envoy.",
      ...byLabel("reason", () => counts.unusual),
    },
    {
      name: "headgate_quota_ignored_reports_total",
      help: "Usage reports of buckets without a share; the Envoys' own settings apply.",
      ...byLabel("cause", () => counts.ignored),
    },
    {
      name: "headgate_quota_overflows_total",
      help: "Buckets beyond a bound of a stream, an identity, a domain or the process.",
      ...byLabel("bound", () => counts.overflows),
    },
    {
      name: "headgate_quota_hits_total",
      help: "Hits that Envoys admitted: charged to the store, or pending after a failed charge.",
      ...byLabel("outcome", () =>
        Object.entries({ charged: counts.chargedHits, missed: counts.missedHits }),
      ),
    },
    {
      name: "headgate_quota_failed_claims_total",
      help: "Claims of quota shares that the store did not answer.",
      read: (add) => add(counts.failedClaimCount),
    },
    {
      name: "headgate_quota_rejoins_total",
      help: "Buckets that continued on another stream of the same Envoy.",
      read: (add) => add(counts.rejoinCount),
    },
  ];
}
