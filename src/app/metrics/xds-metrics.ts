import type { MetricGroup, ReadMetric } from "../base/metrics.js";
import type { XdsStatus } from "../policy/policy-xds.js";

/** What is told of the control plane; only where the policy comes from one. */
export function xdsMetrics(status: () => XdsStatus): MetricGroup {
  return { gauges: gauges(status), counters: counters(status) };
}

function gauges(status: () => XdsStatus): readonly ReadMetric[] {
  return [
    {
      name: "headgate_xds_connected",
      help: "1 while there is a connection to the control plane.",
      read: (add) => add(status().isConnected ? 1 : 0),
    },
    {
      name: "headgate_xds_last_update_timestamp_seconds",
      help: "When a set of the control plane was accepted last, also an unchanged one.",
      read: (add) => add((status().confirmedEpochUs ?? 0) / 1_000_000),
    },
  ];
}

function counters(status: () => XdsStatus): readonly ReadMetric[] {
  return [
    {
      name: "headgate_xds_responses_total",
      help: "Sets of the control plane, by the answer; ignored: overtaken, or not asked for.",
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
      help: "Streams from the control plane that ended, and tries that failed, by reason.",
      labelNames: ["reason"],
      read: (add) => {
        for (const [reason, count] of status().endCounts) add(count, { reason });
      },
    },
  ];
}
