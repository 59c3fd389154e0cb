import type { RefusedConnections } from "../base/address-bound.js";
import { byLabel, type MetricGroup } from "../base/metrics.js";

/** Counts of the process itself: plain integers, read when scraped. */
export interface ProcessCounts {
  /** Calls that failed because of a bug in this program. */
  bugCount: number;
  /** Values under Headgate's keys in the store that Headgate did not write. */
  badValueCount: number;
  /** Connections refused above the maximum of one address, by port. */
  readonly refusedConnections: RefusedConnections;
}

/** Returns counts that are all 0. */
export function newProcessCounts(): ProcessCounts {
  const refusedConnections = { grpc: 0, control: 0, http: 0, monitoring: 0, resp: 0 };
  return { bugCount: 0, badValueCount: 0, refusedConnections };
}

/** Returns the metrics of the process itself. */
export function processMetrics(processCounts: ProcessCounts, version: string): MetricGroup {
  return {
    counters: [
      {
        name: "headgate_internal_errors_total",
        help: "Calls that failed because of an internal error.",
        read: (add) => add(processCounts.bugCount),
      },
      {
        name: "headgate_store_bad_values_total",
        help: "Values in the store that Headgate did not write; counted as unused buckets.",
        read: (add) => add(processCounts.badValueCount),
      },
      {
        name: "headgate_refused_connections_total",
        help: "Connections closed because one address had too many, by port.",
        ...byLabel("port", () => Object.entries(processCounts.refusedConnections)),
      },
    ],
    gauges: [
      {
        name: "headgate_build_info",
        help: "Always 1; the label is the version of the program.",
        labelNames: ["version"],
        read: (add) => add(1, { version }),
      },
    ],
  };
}
