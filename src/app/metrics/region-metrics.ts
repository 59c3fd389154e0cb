import type { Lender, RegionLending } from "../../fleet/regions/lender.js";
import type { MetricGroup, ReadMetric } from "../base/metrics.js";

/** Returns the metrics of what this replica borrows. Labels are names from the configuration. */
export function regionMetrics(
  lender: Pick<Lender, "regions" | "keyCount" | "droppedKeyCount">,
): MetricGroup {
  const series = (row: RegionRow): ReadMetric => ({
    name: row.name,
    help: row.help,
    labelNames: ["peer"],
    read: (add) => {
      for (const region of lender.regions()) {
        const value = row.of(region);
        if (value !== undefined) add(value, { peer: region.region });
      }
    },
  });
  return {
    counters: [
      ...counterRows.map(series),
      {
        name: "headgate_region_dropped_keys_total",
        help: "Times that nothing was borrowed for a key, because too many others had more demand.",
        read: (add) => add(lender.droppedKeyCount),
      },
    ],
    gauges: [
      ...gaugeRows.map(series),
      {
        name: "headgate_region_borrowing_keys",
        help: "Keys of global limits for which this replica borrows from other regions.",
        read: (add) => add(lender.keyCount),
      },
    ],
  };
}

interface RegionRow {
  readonly name: string;
  readonly help: string;
  readonly of: (region: RegionLending) => number | undefined;
}

const counterRows: readonly RegionRow[] = [
  {
    name: "headgate_region_calls_total",
    help: "Calls to another region's store that ask for hits of global limits.",
    of: ({ callCount }) => callCount,
  },
  {
    name: "headgate_region_failed_calls_total",
    help: "Those of them that failed.",
    of: ({ failedCallCount }) => failedCallCount,
  },
  {
    name: "headgate_region_asked_hits_total",
    help: "Hits of global limits that another region was asked for.",
    of: ({ askedHits }) => askedHits,
  },
  {
    name: "headgate_region_borrowed_hits_total",
    help: "Hits of global limits that another region gave, and that limits here have.",
    of: ({ borrowedHits }) => borrowedHits,
  },
  {
    name: "headgate_region_lost_hits_total",
    help: "Hits charged in another region that never arrived: a reply was lost, or was too late.",
    of: ({ lostHits }) => lostHits,
  },
];

const gaugeRows: readonly RegionRow[] = [
  {
    name: "headgate_region_reachable",
    help: "1 while calls to another region's store succeed.",
    of: ({ isReachable }) => (isReachable ? 1 : 0),
  },
  {
    name: "headgate_region_round_trip_seconds",
    help: "Duration of the last successful call to another region's store; absent before one.",
    of: ({ roundTripMs }) => (roundTripMs === undefined ? undefined : roundTripMs / 1_000),
  },
];
