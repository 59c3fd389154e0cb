/**
 * The pieces of alerts' queries. Nothing of a Prometheus's own is in them: what is summed up stays
 * apart by `namespace` and `job`, whatever they are.
 */
const fleetLabels: readonly string[] = ["namespace", "job"];

/** An aggregation over each fleet, and over more labels. */
export function by(how: "sum" | "max" | "min" | "count", labels: readonly string[] = []): string {
  return `${how} by (${[...fleetLabels, ...labels].join(", ")})`;
}

/** What counters of a fleet grow by in a second, over five minutes. */
export function grows(series: string, labels: readonly string[] = []): string {
  return `${by("sum", labels)} (rate(${series}[5m]))`;
}
