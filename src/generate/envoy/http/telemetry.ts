import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { envoyGrpc } from "../base/http-filter.js";
import { extension } from "../base/values.js";

/** Reports whether Headgate reads proxies' reports on a service, or shares its limit among them. */
export function isWatched({ concurrency }: ServicePolicy): boolean {
  if (concurrency === undefined) return false;
  return concurrency.feedback.length > 0 || concurrency.sources.some((one) => one !== "extProc");
}

/**
 * Returns what a proxy reports to Headgate: the bootstrap's fields, empty if no service is watched.
 *
 * Source: envoy.config.bootstrap.v3.Bootstrap; envoy.config.metrics.v3.MetricsServiceConfig.
 */
export function telemetry(context: EnvoyContext): TreeMap {
  const { policy, headgateClusters } = context;
  if (!policy.services.some(isWatched)) return {};
  const grpcService = envoyGrpc(headgateClusters.control);
  return {
    stats_flush_interval: noted("Headgate reads the statistics once a second.", "1s"),
    stats_config: { stats_matcher: { inclusion_list: { patterns: patterns() } } },
    stats_sinks: [
      extension(
        "envoy.stat_sinks.metrics_service",
        "envoy.config.metrics.v3.MetricsServiceConfig",
        {
          transport_api_version: "V3",
          grpc_service: grpcService,
          report_counters_as_deltas: noted(
            "Counts since the last flush, so that a restart loses nothing.",
            true,
          ),
          histogram_emit_mode: noted(
            "Quantiles contain the minimum and median latency. Buckets would add nothing.",
            "SUMMARY",
          ),
        },
      ),
    ],
    cluster_manager: noted("Drops and errors by cluster, even if no statistics are pushed.", {
      load_stats_config: {
        api_type: "GRPC",
        transport_api_version: "V3",
        grpc_services: [grpcService],
      },
    }),
  };
}

/** Statistics that match no pattern are not even counted. */
function patterns(): readonly Tree[] {
  return [
    noted("Statistics that Headgate reads.", {
      safe_regex: { regex: String.raw`cluster\..*\.upstream_rq_(${requestStats})` },
    }),
    { safe_regex: { regex: String.raw`cluster\..*\.upstream_cx_overflow` } },
    { safe_regex: { regex: String.raw`cluster\..*\.circuit_breakers\.${breakerStats}` } },
    { contains: ".adaptive_concurrency.gradient_controller." },
    noted("Statistics of proxies and their protections, for people. Headgate ignores them.", {
      prefix: "overload.",
    }),
    { contains: ".admission_control." },
    { contains: ".http_local_rate_limit." },
    { contains: ".ratelimit." },
    { contains: ".ext_proc." },
    { contains: ".outlier_detection." },
    { contains: ".upstream_rq_retry" },
    { contains: ".downstream_rq_" },
    { contains: ".downstream_cx_" },
    { safe_regex: { regex: String.raw`cluster\..*\.membership_(healthy|total)` } },
    { prefix: "control_plane." },
    { prefix: "runtime." },
    { prefix: "server." },
  ];
}

/** Suffixes of `cluster.<name>.upstream_rq_...` that Headgate knows. */
const requestStats = "time|active|completed|[1-5]xx|active_overflow|pending_overflow|drop_overload";

/** Suffixes of `cluster.<name>.circuit_breakers.` that Headgate reads or dashboards show. */
const breakerStats = String.raw`(default|high)\.(rq_open|remaining_rq)`;
