/** What a number of a cluster is about; those of no name stay as they are. */
export type ClusterNumber = "active" | "completed" | "failed" | "overflowed" | "remaining";

/** One family of a flush: its name, and what it says. */
export interface Family {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly value: ClusterNumber | number;
}

/**
 * What an Envoy 1.40 with a generated bootstrap flushes of each cluster that has requests, after
 * `cluster.<name>.`: as one was recorded, with the counters that it adds once requests fail or are
 * refused.
 */
export const clusterFamilies: readonly Family[] = [
  { name: "upstream_rq_completed", type: "counter", value: "completed" },
  { name: "external.upstream_rq_completed", type: "counter", value: "completed" },
  { name: "upstream_rq_5xx", type: "counter", value: "failed" },
  { name: "external.upstream_rq_5xx", type: "counter", value: "failed" },
  { name: "upstream_rq_active_overflow", type: "counter", value: "overflowed" },
  { name: "upstream_rq_active", type: "gauge", value: "active" },
  { name: "circuit_breakers.default.remaining_rq", type: "gauge", value: "remaining" },
  { name: "circuit_breakers.high.remaining_rq", type: "gauge", value: 40 },
  { name: "circuit_breakers.default.rq_open", type: "gauge", value: 0 },
  { name: "membership_total", type: "gauge", value: 1 },
  { name: "membership_healthy", type: "gauge", value: 1 },
];

/** Histograms of each cluster, after `cluster.<name>.`; each goes as quantiles. */
export const clusterTimes = ["upstream_rq_time", "external.upstream_rq_time"] as const;

const connectionCounters = ["cx_total", "cx_rx_bytes_total", "cx_tx_bytes_total", "cx_http1_total"];
const requestCounters = ["rq_total", "rq_http1_total", "rq_2xx", "rq_completed"];
const managerGauges = ["cx_active", "cx_http1_active", "cx_rx_bytes_buffered", "rq_active"];

/** What it flushes beside: of its listeners, of its runtime and of itself. */
export const processCounters: readonly string[] = [
  ...["admin", "ingress"].flatMap((manager) =>
    [...connectionCounters, ...requestCounters].map((one) => `http.${manager}.downstream_${one}`),
  ),
  ...["admin.main_thread", "admin", "0.0.0.0_10000", "0.0.0.0_10000.worker_0"].map(
    (listener) => `listener.${listener}.downstream_cx_total`,
  ),
  ...["admin.http.admin", "0.0.0.0_10000.http.ingress"].flatMap((listener) =>
    ["2xx", "completed"].map((one) => `listener.${listener}.downstream_rq_${one}`),
  ),
  "cluster.headgate_control.upstream_rq_completed",
  "cluster.headgate_control.internal.upstream_rq_completed",
  ...["override_dir_not_exists", "load_success", "init_fetch_timeout", "update_attempt"].map(
    (one) => `runtime.${one}`,
  ),
  ...["static_unknown_fields", "dynamic_unknown_fields", "wip_protos"].map(
    (one) => `server.${one}`,
  ),
];

/** The same for gauges. */
export const processGauges: readonly string[] = [
  ...["admin", "ingress"].flatMap((manager) =>
    managerGauges.map((one) => `http.${manager}.downstream_${one}`),
  ),
  ...["admin.main_thread", "admin", "0.0.0.0_10000", "0.0.0.0_10000.worker_0"].map(
    (listener) => `listener.${listener}.downstream_cx_active`,
  ),
  ...["membership_total", "membership_healthy", "circuit_breakers.default.rq_open"].map(
    (one) => `cluster.headgate_control.${one}`,
  ),
  "cluster.headgate_control.upstream_rq_active",
  ...["num_layers", "num_keys", "control_plane.connected_state"].map((one) => `runtime.${one}`),
  ...[
    ...["version", "stats_recent_lookups", "parent_connections", "uptime", "state", "live"],
    ...["memory_physical_size", "memory_allocated", "memory_heap_size", "total_connections"],
    ...["compilation_settings.fips_mode", "days_until_first_cert_expiring", "concurrency"],
    "hot_restart_epoch",
  ].map((one) => `server.${one}`),
];

/** Histograms of the process, each as quantiles. */
export const processTimes: readonly string[] = [
  "http.ingress.downstream_rq_time",
  "http.admin.downstream_rq_time",
  "server.initialization_time_ms",
];

/** Quantiles of a histogram. Source: Envoy, "Metrics", `histogram_bucket_settings`. */
export const quantiles = [0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1] as const;
