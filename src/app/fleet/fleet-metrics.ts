import { gateStates } from "../../core/admission/gate.js";
import type { ServiceShares } from "../../core/feedback/feedback.js";
import { byLabel, type MetricGroup, type ReadMetric } from "../base/metrics.js";
import type { FleetLoopStatus } from "./fleet-loop.js";

/** Returns the metrics of the fleet's loop. Labels are from closed sets or the policy: no nodes. */
export function fleetMetrics(status: () => FleetLoopStatus | undefined): MetricGroup {
  return {
    gauges: [
      ...leaderGauges(status),
      ...factRows.map((row) => factGauge(row, status)),
      ...sumGauges(status),
    ],
    counters: counters(status),
  };
}

type ReadStatus = () => FleetLoopStatus | undefined;

function leaderGauges(status: ReadStatus): readonly ReadMetric[] {
  return [
    {
      name: "headgate_fleet_leading",
      help: "1 on the replica that leads and makes the fleet snapshots.",
      read: (add) => add(status()?.isLeading === true ? 1 : 0),
    },
    {
      name: "headgate_fleet_term",
      help: "Leader term of the active snapshot; absent without one.",
      read: (add) => {
        const term = status()?.snapshot?.term;
        if (term !== undefined) add(term);
      },
    },
    {
      name: "headgate_fleet_snapshot_age_seconds",
      help: "Age of the newest snapshot on this replica; absent before the first.",
      read: (add) => {
        const ageMs = status()?.ageMs;
        if (ageMs !== undefined) add(ageMs / 1_000);
      },
    },
  ];
}

/** One number of a service, or none if it is not known. */
interface FactRow {
  readonly name: string;
  readonly help: string;
  readonly of: (service: ServiceShares) => number | undefined;
}

const factRows: readonly FactRow[] = [
  {
    name: "headgate_fleet_limit",
    help: "Limit on requests in flight at a service, over the fleet.",
    of: ({ limit }) => limit,
  },
  {
    name: "headgate_fleet_inflight",
    help: "Requests in flight at a service, over the fleet.",
    of: ({ facts }) => facts.inFlight,
  },
  {
    name: "headgate_fleet_request_rate",
    help: "Completed requests of a service per second, over the fleet, as the leader sees it.",
    of: ({ facts }) => facts.rps,
  },
  {
    name: "headgate_fleet_rtt_seconds",
    help: "Latency of a service.",
    of: ({ facts }) => inSeconds(facts.rttMs),
  },
  {
    name: "headgate_fleet_min_rtt_seconds",
    help: "Latency of a service without queueing, as its law estimates it.",
    of: ({ facts }) => inSeconds(facts.minRttMs),
  },
  {
    name: "headgate_fleet_gradient",
    help: "Ratio of the two latencies, as the law bounds it; below 1 there is queueing.",
    of: ({ facts }) => facts.gradient,
  },
  {
    name: "headgate_fleet_reject_probability",
    help: "The ratio of a service's requests that the fleet should refuse.",
    of: ({ rejectRatio }) => rejectRatio,
  },
  {
    name: "headgate_fleet_share_nodes",
    help: "Envoys with a share of a service's limit.",
    of: ({ shares }) => shares.size,
  },
];

function factGauge({ name, help, of }: FactRow, status: ReadStatus): ReadMetric {
  return {
    name,
    help,
    labelNames: ["service"],
    read: (add) => {
      for (const [service, shares] of status()?.snapshot?.services ?? []) {
        const value = of(shares);
        if (value !== undefined) add(value, { service });
      }
    },
  };
}

function inSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1_000;
}

function sumGauges(status: ReadStatus): readonly ReadMetric[] {
  return [
    {
      name: "headgate_fleet_shares",
      help: "Sum of the Envoys' shares of a service's limit, by Envoy's priority.",
      labelNames: ["service", "priority"],
      read: (add) => {
        for (const [service, { shares }] of status()?.snapshot?.services ?? []) {
          const all = [...shares.values()];
          const atDefault = all.reduce((sum, share) => sum + share.default, 0);
          add(atDefault, { service, priority: "default" });
          const high = all.reduce((sum, share) => sum + share.high, 0);
          add(high, { service, priority: "high" });
        }
      },
    },
    {
      name: "headgate_fleet_gate_state",
      help: "1 for the current state of the fleet's gate of a service.",
      labelNames: ["service", "state"],
      read: (add) => {
        for (const [service, { gate }] of status()?.snapshot?.services ?? []) {
          for (const state of gateStates) add(gate === state ? 1 : 0, { service, state });
        }
      },
    },
  ];
}

function counters(status: ReadStatus): readonly ReadMetric[] {
  return [
    {
      name: "headgate_fleet_snapshots_total",
      help: "Snapshots by outcome. refused: another replica leads. older: arrived too late.",
      ...byLabel("outcome", () => {
        const { published = 0, refused = 0, older = 0, unreadable = 0 } = status()?.counts ?? {};
        return Object.entries({ published, refused, older, unreadable });
      }),
    },
    {
      name: "headgate_fleet_failed_calls_total",
      help: "Reports and snapshots that could not be written to or read from the store.",
      read: (add) => add(status()?.counts.failed ?? 0),
    },
    {
      name: "headgate_fleet_left_out_total",
      help: "Report rows, whole reports and snapshot services dropped for lack of space.",
      read: (add) => add(status()?.counts.leftOut ?? 0),
    },
  ];
}
