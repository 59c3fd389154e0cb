import type { Rule } from "../../core/limits/limit.js";
import { clustersNamed, quoted, series } from "../../generate/observe/promql.js";
import { clusterNames } from "../../policy/services/service-clusters.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import {
  type ServiceMeasure,
  serviceMeasures,
} from "../../recommend/services/prometheus-windows.js";

/** Maximum values of a service over the whole range, each as one number. */
const peakMeasures = ["connections", "pendingRequests"] as const;

/** Queries for maximum values of any proxy, for the overload manager. */
export const proxyPeaks = {
  heapBytes: (range: string) => `max(max_over_time(envoy_server_memory_heap_size[${range}]))`,
  downstreamConnections: (range: string) =>
    `max(max_over_time(sum without (envoy_listener_address, listener_address) ` +
    `(envoy_listener_downstream_cx_active)[${range}:1m]))`,
} as const;

/** Hits of a rule in each step: of all callers together, or by `path`. */
const ruleMeasures = ["hits", "callerHits"] as const;

/** Name of a query about a service. */
export type ServiceQueryName = ServiceMeasure | (typeof peakMeasures)[number];

/** Name of a query that can be replaced. */
export type QueryName = ServiceQueryName | (typeof ruleMeasures)[number];

/** Names of the queries about services. */
export const serviceQueryNames: readonly ServiceQueryName[] = [...serviceMeasures, ...peakMeasures];

/** Names of all queries. */
export const queryNames: readonly QueryName[] = [...serviceQueryNames, ...ruleMeasures];

/** Times of a query in PromQL notation. */
export interface QueryTimes {
  /** Length of one step: `1m`. */
  readonly window: string;
  /** Length of the whole range: `1d`. */
  readonly range: string;
}

/** Queries and their time range. */
export interface PrometheusPlan {
  readonly times: QueryTimes;
  readonly rangeMs: number;
  readonly stepMs: number;
  /** Replacements, by name. */
  readonly queries: ReadonlyMap<QueryName, string>;
}

/** Returns the queries of a service. They prefer Envoy's metrics and fall back to Headgate's. */
export function serviceQueries(
  service: ServicePolicy,
  { window, range }: QueryTimes,
): Record<ServiceQueryName, string> {
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

/** Returns a query for the highest rate of each rule, in hits per second. */
export function ruleRatesQuery({ window, range }: QueryTimes): string {
  const rates = `sum by (domain, rule) (rate(headgate_decisions_total[${window}]))`;
  return `max_over_time(${rates}[${range}:${window}])`;
}

/** Returns a query for requested hits in each step, admitted or not: of all callers, or of each. */
export function ruleHitsQuery(
  rule: Rule,
  name: "hits" | "callerHits",
  { times, queries }: PrometheusPlan,
): string {
  const own = queries.get(name);
  if (own !== undefined) {
    return own
      .replaceAll("$domain", () => quoted(rule.domain))
      .replaceAll("$rule", () => quoted(rule.label))
      .replaceAll("$window", times.window);
  }
  const hits = `increase(${askedHits(rule, name)}[${times.window}])`;
  return `round(${name === "hits" ? "sum" : "sum by (path)"}(${hits})) > 0`;
}

/** Returns a query for the number of callers of a rule that names them in metrics. */
export function callerCountQuery(rule: Rule, plan: PrometheusPlan): string {
  const { range, window } = plan.times;
  const own = plan.queries.has("callerHits");
  const seen = own
    ? `count_over_time((${ruleHitsQuery(rule, "callerHits", plan)})[${range}:${window}])`
    : `last_over_time(${askedHits(rule, "callerHits")}[${range}])`;
  return `count(count by (path) (${seen}))`;
}

/** Returns a query for hits without a caller's name in metrics: there are too many callers. */
export function unnamedHitsQuery(rule: Rule, { range }: QueryTimes): string {
  return `sum(increase(${askedHits(rule, "hits")}[${range}]))`;
}

function askedHits({ domain, label }: Rule, name: "hits" | "callerHits"): string {
  const metric = name === "hits" ? "headgate_hits_total" : "headgate_detailed_hits_total";
  return series(metric, { domain, rule: label, outcome: ["within", "over", "shadow_over"] });
}

/** Fills in a user's query: `$service` is the quoted name, `$window` the length of a step. */
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
