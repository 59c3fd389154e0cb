import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { HealthProbe } from "../../../policy/upstream/health-checks.js";
import type { Tree, TreeMap } from "../../base/document.js";
import { durationText } from "../base/values.js";

/**
 * Returns the health checks of a service's hosts. Undefined if there are none.
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
      initial_jitter: optionalDuration(policy.initialJitterMs),
      interval_jitter: optionalDuration(policy.intervalJitterMs),
      unhealthy_interval: optionalDuration(policy.unhealthyIntervalMs),
      // Also before the first request: Envoy's default is then one check per minute.
      no_traffic_interval: interval,
      unhealthy_threshold: policy.unhealthyThreshold,
      healthy_threshold: policy.healthyThreshold,
      ...probeOf(policy.probe, service),
    },
  ];
}

function optionalDuration(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : durationText(ms);
}

/** Envoy expects payload texts in hexadecimal. Source: envoy.config.core.v3.HealthCheck.Payload. */
function payloads({ send, receive }: Extract<HealthProbe, { kind: "tcp" }>): TreeMap {
  const payload = (text: string): TreeMap => ({ text: hexText(text) });
  return {
    send: send === undefined ? undefined : payload(send),
    receive: receive === undefined ? undefined : [payload(receive)],
  };
}

/** All characters are ASCII, because the policy allows no others. */
function hexText(text: string): string {
  return [...text].map((char) => char.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}

/** Sets the host name, because Envoy's default is the name of the cluster. */
function probeOf(probe: HealthProbe, { name, hosts, upstream }: ServicePolicy): TreeMap {
  switch (probe.kind) {
    case "tcp":
      return { tcp_health_check: payloads(probe) };
    case "grpc":
      return { grpc_health_check: { service_name: probe.service } };
    case "http":
      return {
        http_health_check: {
          host: probe.host ?? hosts[0] ?? upstream?.address ?? name,
          path: probe.path,
          method: probe.method === "GET" ? undefined : probe.method,
          expected_statuses: probe.statuses.map((status) => ({ start: status, end: status + 1 })),
        },
      };
  }
}
