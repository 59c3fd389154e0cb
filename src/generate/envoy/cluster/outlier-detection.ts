import type { OutlierDetectionPolicy } from "../../../policy/upstream/outlier-detection.js";
import type { TreeMap } from "../../base/document.js";
import { durationText } from "../base/values.js";

/**
 * Returns when a cluster ejects a host. Source: envoy.config.cluster.v3.OutlierDetection. Says
 * explicitly what is enforced, since Envoy by default counts gateway failures without acting on
 * them, and acts on success rates that were not configured.
 */
export function outlierDetectionTree(policy: OutlierDetectionPolicy): TreeMap {
  const { successRate, failurePercentage, localOriginFailures } = policy;
  const isSplit = localOriginFailures !== undefined;
  return {
    consecutive_5xx: policy.consecutive5xx,
    consecutive_gateway_failure: policy.consecutiveGatewayFailures,
    enforcing_consecutive_5xx: 100,
    enforcing_consecutive_gateway_failure: 100,
    interval: durationText(policy.intervalMs),
    base_ejection_time: durationText(policy.baseEjectionMs),
    max_ejection_time: durationText(policy.ejectionMsMax),
    max_ejection_percent: policy.ejectionPercentMax,
    enforcing_success_rate: successRate === undefined ? 0 : 100,
    success_rate_minimum_hosts: successRate?.hostsMin,
    success_rate_request_volume: successRate?.requestsMin,
    // A factor of 1.9 is written as 1900.
    success_rate_stdev_factor:
      successRate === undefined ? undefined : Math.round(successRate.deviations * 1_000),
    enforcing_failure_percentage: failurePercentage && 100,
    failure_percentage_threshold: failurePercentage?.thresholdPercent,
    failure_percentage_minimum_hosts: failurePercentage?.hostsMin,
    failure_percentage_request_volume: failurePercentage?.requestsMin,
    split_external_local_origin_errors: isSplit ? true : undefined,
    consecutive_local_origin_failure: localOriginFailures,
    enforcing_consecutive_local_origin_failure: isSplit ? 100 : undefined,
    enforcing_local_origin_success_rate: isSplit ? 0 : undefined,
  };
}
