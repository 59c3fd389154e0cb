import { snakeCase } from "../../core/base/text.js";
import type { QuotaRegistry } from "../../decide/quota/quota-registry.js";
import type { ControlPlane } from "../../rpc/control/control-plane.js";
import {
  type NodeProblem,
  nodeProblems,
  problemsOf,
  streamClaims,
} from "../../rpc/nodes/node-registry.js";
import { byLabel, type MetricGroup, type ReadMetric } from "../base/metrics.js";
import { quotaMetrics } from "./quota-metrics.js";

interface ControlMetricsParts {
  readonly plane: ControlPlane;
  /** Monotonic time, in milliseconds. */
  readonly nowMs: () => number;
  /** Quota assignments of Envoys. Absent if no quotas are divided. */
  readonly quotas?: QuotaRegistry;
}

/** Returns the metrics of the control port. Labels are from closed sets or the policy: no nodes. */
export function controlMetrics(parts: ControlMetricsParts): MetricGroup {
  const quotas = parts.quotas && quotaMetrics(parts.quotas);
  return {
    gauges: [...gauges(parts), ...(quotas?.gauges ?? [])],
    counters: [...counters(parts), ...(quotas?.counters ?? [])],
  };
}

function gauges({ plane, nowMs }: ControlMetricsParts): readonly ReadMetric[] {
  const { registry } = plane;
  return [
    {
      name: "headgate_control_nodes",
      help: "Envoys known to this replica.",
      read: (add) => add(registry.nodeCount),
    },
    {
      name: "headgate_control_node_streams",
      help: "Envoys that get layers, and that report load or metrics, on this replica.",
      labelNames: ["stream"],
      read: (add) => {
        const nodes = [...registry.nodes];
        for (const claim of streamClaims) {
          const { length } = nodes.filter(({ claims }) => claims.has(claim));
          add(length, { stream: snakeCase(claim) });
        }
      },
    },
    {
      name: "headgate_control_open_streams",
      help: "Open streams of the control port, by service.",
      ...byLabel("service", () => plane.counts.openStreams),
    },
    {
      name: "headgate_control_node_problems",
      help: "Envoys with a problem; /debug/fleet names them.",
      labelNames: ["problem"],
      read: (add) => {
        const counts = new Map<NodeProblem, number>(nodeProblems.map((problem) => [problem, 0]));
        for (const node of registry.nodes) {
          for (const problem of problemsOf(node, nowMs())) {
            counts.set(problem, (counts.get(problem) ?? 0) + 1);
          }
        }
        for (const [problem, count] of counts) add(count, { problem });
      },
    },
    {
      name: "headgate_control_service_problems",
      help: "Services without a cluster, clusters of two services, and limits that cannot be sent.",
      labelNames: ["problem"],
      read: (add) => {
        add(plane.unseenServices().length, { problem: "no_cluster" });
        add(plane.contestedClusters.size, { problem: "cluster_of_two" });
        add(plane.contestedPins.length, { problem: "pins_of_two" });
        add(plane.unfixedPins.length, { problem: "pin_without_fixed_rtt" });
      },
    },
    {
      name: "headgate_control_unclaimed_clusters",
      help: "Clusters of Envoys without a service, up to a bound; /debug/fleet names them.",
      read: (add) => add(registry.unclaimedClusters.size),
    },
    ...shareGauges(plane),
  ];
}

/** Returns gauges of the last second, by service. */
function shareGauges(plane: ControlPlane): readonly ReadMetric[] {
  return [
    {
      name: "headgate_control_held_requests",
      help: "Requests in flight that the circuit breakers of connected Envoys allow, by service.",
      ...byLabel("service", () => sums(plane, ({ held }) => held)),
    },
    {
      name: "headgate_control_inflight",
      help: "Requests in flight at a service, as connected Envoys report them.",
      ...byLabel("service", () => sums(plane, ({ inFlight }) => inFlight)),
    },
  ];
}

function sums(
  { lastReports }: ControlPlane,
  of: (report: ControlPlane["lastReports"][number]) => number,
): ReadonlyMap<string, number> {
  const byService = new Map<string, number>();
  for (const report of lastReports) {
    byService.set(report.service, (byService.get(report.service) ?? 0) + of(report));
  }
  return byService;
}

function counters({ plane }: ControlMetricsParts): readonly ReadMetric[] {
  const { counts, registry } = plane;
  return [
    {
      name: "headgate_control_overflow_requests_total",
      help: "Requests that circuit breakers refused, as connected Envoys report them.",
      ...byLabel("service", () => plane.overflowCounts),
    },
    {
      name: "headgate_control_messages_total",
      help: "Messages from Envoys, by service.",
      ...byLabel("service", () => counts.messages),
    },
    {
      name: "headgate_control_failed_streams_total",
      help:
        "Streams that were closed or refused, by cause; owned_by_another and " +
        "identity_not_allowed: because of the client's identity.",
      ...byLabel("cause", () => counts.faults),
    },
    {
      name: "headgate_control_layers_total",
      help: "Layers sent, and the answers of Envoys; stray: an answer to no pending layer.",
      labelNames: ["event"],
      read: (add) => {
        add(counts.pushCount, { event: "sent" });
        add(counts.acknowledgedCount, { event: "acknowledged" });
        add(counts.refusedCount, { event: "refused" });
        add(counts.strayCount, { event: "stray" });
      },
    },
    {
      name: "headgate_control_ignored_numbers_total",
      help: "Values from Envoys that were duplicate, too late or beyond a bound.",
      read: (add) => add(registry.ignoredCount),
    },
  ];
}
