import { clustersNamed, quoted, series } from "../../generate/observe/promql.js";
import { clusterNames } from "../../policy/services/service-clusters.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import {
  type ServiceMeasure,
  serviceMeasures,
} from "../../recommend/services/prometheus-windows.js";

/** The largest values of a service over the whole time, each as one number. */
const peakMeasures = ["connections", "pendingRequests"] as const;

/** The largest values of any proxy, for the overload manager. */
export const proxyPeaks = {
  heapBytes: (range: string) => `max(max_over_time(envoy_server_memory_heap_size[${range}]))`,
  downstreamConnections: (range: string) =>
    `max(max_over_time(sum without (envoy_listener_address, listener_address) ` +
    `(envoy_listener_downstream_cx_active)[${range}:1m]))`,
} as const;

/** The name of a query that can be replaced. */
export type QueryName = ServiceMeasure | (typeof peakMeasures)[number];

/** All of them. */
export const queryNames: readonly QueryName[] = [...serviceMeasures, ...peakMeasures];

/** Times of a query, as PromQL has them. */
export interface QueryTimes {
  /** Of one step: `1m`. */
  readonly window: string;
  /** The whole time: `1d`. */
  readonly range: string;
}

/** The queries of a service. Those of Envoy come first, those of Headgate where Envoy has none. */
export function serviceQueries(
  service: ServicePolicy,
  { window, range }: QueryTimes,
): Record<QueryName, string> {
  const cluster = clustersNamed(clusterNames(service));
  const envoy = (metric: string) => series(`envoy_cluster_upstream_${metric}`, cluster);
  const own = (metric: string) => series(`headgate_admission_${metric}`, { service: service.name });
  const rate = (of: string) => `sum(rate(${of}[${window}]))`;
  const quantile = (ratio: number) => {
    const buckets = `sum by (le) (rate(${envoy("rq_time_bucket")}[${window}]))`;
    return `histogram_quantile(${ratio}, ${buckets})`;
  };
  const failed = series("envoy_cluster_upstream_rq_xx", {
    ...cluster,
    envoy_response_code_class: ["5", ""],
    response_code_class: ["5", ""],
  });
  return {
    perSecond: `${rate(envoy("rq_time_count"))} or ${rate(own("outcomes_total"))}`,
    latencyMs: `${rate(envoy("rq_time_sum"))} / ${rate(envoy("rq_time_count"))}`,
    inFlight: `sum(avg_over_time(${own("inflight")}[${window}]))`,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    errorsPerSecond: rate(failed),
    limit: `sum(${own("inflight_max")})`,
    connections: `max(max_over_time(${envoy("cx_active")}[${range}]))`,
    pendingRequests: `max(max_over_time(${envoy("rq_pending_active")}[${range}]))`,
  };
}

/** The highest rate of each rule, in hits per second. */
export function ruleRatesQuery({ window, range }: QueryTimes): string {
  const rates = `sum by (domain, rule) (rate(headgate_decisions_total[${window}]))`;
  return `max_over_time(${rates}[${range}:${window}])`;
}

/** A query that somebody wrote: `$service` stands for the name in quotes, `$window` for a step. */
export function fillQuery(
  text: string,
  { name }: Pick<ServicePolicy, "name">,
  { window, range }: QueryTimes,
): string {
  return text
    .replaceAll("$service", () => quoted(name))
    .replaceAll("$window", window)
    .replaceAll("$range", range);
}
