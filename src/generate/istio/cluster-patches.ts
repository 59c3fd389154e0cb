import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";
import { hostThresholds } from "../envoy/cluster/circuit-breakers.js";
import { healthCheckTrees } from "../envoy/cluster/health-checks.js";
import { panicThreshold } from "../envoy/cluster/load-balancing.js";
import { outlierDetectionTree } from "../envoy/cluster/outlier-detection.js";
import { criticalThreshold } from "../envoy/cluster/requests-max.js";
import { clusterPatch } from "./envoy-filter.js";
import { meshName } from "./mesh-name.js";
import type { IstioPlace } from "./place.js";
import { hasUrgentRoutes } from "./route-patches.js";

/**
 * Returns what a DestinationRule cannot express for a service's cluster: the breaker of critical
 * requests, and how hosts are judged other than by consecutive failures.
 */
export function clusterPatches(service: ServicePolicy, place: IstioPlace): readonly Tree[] {
  const mesh = meshName(service);
  if (mesh === undefined) return [];
  const match = { service: mesh.host, portNumber: mesh.port };
  // The name of a sidecar's own cluster has the container's port, and the cluster has one host.
  const isOwn = place.context === "SIDECAR_INBOUND";
  const isUrgent = isOwn && hasUrgentRoutes(service, place);
  const urgent = isUrgent ? criticalBreaker(service, place) : undefined;
  const perHost = isOwn ? undefined : hostThresholds(service.circuitBreakers);
  const settings: TreeMap = {
    circuit_breakers:
      urgent === undefined && perHost === undefined
        ? undefined
        : { ...urgent, per_host_thresholds: perHost },
    outlier_detection: isOwn ? undefined : outlierExtras(service),
    health_checks: isOwn ? undefined : healthCheckTrees(service),
    common_lb_config: isOwn ? undefined : panicThreshold(service.loadBalancing),
  };
  if (Object.values(settings).every((value) => value === undefined)) return [];
  return [
    clusterPatch(
      place.context,
      isOwn ? { service: mesh.host, portNumber: place.port } : match,
      settings,
    ),
  ];
}

function criticalBreaker(service: ServicePolicy, { envoy }: IstioPlace): TreeMap {
  return {
    thresholds: noted(
      "Added to the threshold that Istio generates, which is for all other requests.",
      [criticalThreshold(service, envoy)],
    ),
  };
}

/** Envoy's default maximum ejection time, in milliseconds. */
const envoyEjectionMsMax = 300_000;

/** Callers judge hosts: in a service's own sidecar there is only one. */
function outlierExtras({ outlierDetection: policy }: ServicePolicy): TreeMap | undefined {
  if (policy === undefined) return undefined;
  // As Istio and Envoy set it by default.
  const { successRate, failurePercentage, ejectionMsMax } = policy;
  const isDefault = successRate === undefined && failurePercentage === undefined;
  if (isDefault && ejectionMsMax === envoyEjectionMsMax) return undefined;
  const {
    max_ejection_time,
    enforcing_success_rate,
    success_rate_minimum_hosts,
    success_rate_request_volume,
    success_rate_stdev_factor,
    enforcing_failure_percentage,
    failure_percentage_threshold,
    failure_percentage_minimum_hosts,
    failure_percentage_request_volume,
  } = outlierDetectionTree(policy);
  return {
    max_ejection_time,
    enforcing_success_rate,
    success_rate_minimum_hosts,
    success_rate_request_volume,
    success_rate_stdev_factor,
    enforcing_failure_percentage,
    failure_percentage_threshold,
    failure_percentage_minimum_hosts,
    failure_percentage_request_volume,
  };
}
