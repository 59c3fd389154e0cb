import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { HealthProbe } from "../../../policy/upstream/health-checks.js";
import type { Tree, TreeMap } from "../../base/document.js";
import { durationText } from "../base/values.js";

/**
 * How hosts of a service are asked whether they are well; undefined: nobody asks.
 *
 * Source: envoy.config.core.v3.HealthCheck.
 */
export function healthCheckTrees(service: ServicePolicy): readonly Tree[] | undefined {
  const { healthChecks: policy } = service;
  if (policy === undefined) return undefined;
  const interval = durationText(policy.intervalMs);
  return [
    {
      timeout: durationText(policy.timeoutMs),
      interval,
      // Also before the first request: by itself Envoy then asks once a minute.
      no_traffic_interval: interval,
      unhealthy_threshold: policy.unhealthyThreshold,
      healthy_threshold: policy.healthyThreshold,
      ...probeOf(policy.probe, service),
    },
  ];
}

/** Envoy would call the host as it calls the cluster. */
function probeOf(probe: HealthProbe, { name, hosts, upstream }: ServicePolicy): TreeMap {
  switch (probe.kind) {
    case "tcp":
      return { tcp_health_check: {} };
    case "grpc":
      return { grpc_health_check: { service_name: probe.service } };
    case "http":
      return {
        http_health_check: {
          host: probe.host ?? hosts[0] ?? upstream?.address ?? name,
          path: probe.path,
          expected_statuses: probe.statuses.map((status) => ({ start: status, end: status + 1 })),
        },
      };
  }
}
