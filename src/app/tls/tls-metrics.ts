import type { MetricGroup } from "../base/metrics.js";
import type { TlsStatus } from "./tls.js";

/** The metrics of the gRPC port's TLS, by kind. */
export function tlsMetrics(status: () => TlsStatus): MetricGroup {
  return {
    gauges: [
      {
        name: "headgate_tls_certificate_expiry_timestamp_seconds",
        help: "When the gRPC port's active certificate expires.",
        read: (add) => add(status().expiryEpochUs / 1_000_000),
      },
      {
        name: "headgate_tls_certificate_stale",
        help: "1 while the newest TLS files are refused and older ones are active.",
        read: (add) => add(status().isStale ? 1 : 0),
      },
    ],
    counters: [
      {
        name: "headgate_tls_certificate_loads_total",
        help: "TLS files loaded and refused, the first ones included.",
        labelNames: ["result"],
        read: (add) => {
          add(status().loadedCount, { result: "loaded" });
          add(status().refusedCount, { result: "refused" });
        },
      },
      {
        name: "headgate_tls_refused_connections_total",
        help: "gRPC connections refused before their first call, by cause.",
        labelNames: ["cause"],
        read: (add) => {
          for (const [cause, count] of status().refusedByCause) add(count, { cause });
        },
      },
    ],
  };
}
