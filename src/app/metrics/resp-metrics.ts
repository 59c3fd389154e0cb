import type { RespCounts } from "../../rpc/resp/resp-counts.js";
import type { MetricGroup } from "../base/metrics.js";

/** Returns the metrics of the RESP port, by kind. */
export function respMetrics(counts: RespCounts, connectionCount: () => number): MetricGroup {
  return {
    gauges: [
      {
        name: "headgate_resp_connections_open",
        help: "Open connections of the RESP port.",
        read: (add) => add(connectionCount()),
      },
    ],
    counters: [
      {
        name: "headgate_resp_commands_total",
        help:
          "Commands of the RESP port, by command (`other`: not supported) and result: " +
          "`allowed`, `limited` or `error` for `throttle`, `ok` or `error` for others.",
        labelNames: ["command", "result"],
        read: (add) => counts.read((count, command, result) => add(count, { command, result })),
      },
    ],
  };
}
