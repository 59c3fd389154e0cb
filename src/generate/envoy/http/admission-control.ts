import { grpcStatuses, othersGrpcStatuses } from "../../../core/base/grpc-status.js";
import { httpStatuses } from "../../../core/base/http-status.js";
import { admissionControlKey } from "../../../core/feedback/runtime-keys.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { httpFilter } from "../base/http-filter.js";
import { soleSetting } from "../base/sole-setting.js";
import { durationText, filterOff } from "../base/values.js";

/** gRPC statuses that a lower request rate may reduce. Deliberate refusals are not among them. */
const grpcFailures: readonly number[] = [
  grpcStatuses.deadlineExceeded,
  othersGrpcStatuses.aborted,
  grpcStatuses.internal,
  othersGrpcStatuses.dataLoss,
];

const grpcSuccess = Object.values({ ...grpcStatuses, ...othersGrpcStatuses })
  .filter((status) => !grpcFailures.includes(status))
  .sort((a, b) => a - b);

/**
 * Returns the filter that refuses requests on the caller's side while too many fail. Undefined if
 * no service has it. It has no settings by route, so services that differ are a problem.
 *
 * Source: envoy.extensions.filters.http.admission_control.v3.AdmissionControl.
 */
export function admissionControlFilter(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): Tree | undefined {
  const policy = soleSetting(services, context, {
    id: "HG323",
    name: "admissionControl",
    what: "admission control",
    of: ({ admissionControl }) => admissionControl,
  });
  const first = services.find(({ admissionControl }) => admissionControl === policy);
  if (policy === undefined || first === undefined) return undefined;
  const key = admissionControlKey(first.name);
  const enabled = { default_value: true, runtime_key: key };
  return httpFilter("admission_control", "AdmissionControl", {
    enabled:
      policy.when === "withoutHeadgate"
        ? noted("While Headgate is connected, its runtime layer sets this to false.", enabled)
        : enabled,
    sampling_window: durationText(policy.samplingWindowMs),
    sr_threshold: {
      default_value: { value: policy.successRateThresholdPercent },
      runtime_key: `${key}.sr_threshold`,
    },
    aggression: { default_value: policy.aggression, runtime_key: `${key}.aggression` },
    rps_threshold: {
      default_value: policy.requestsPerSecondMin,
      runtime_key: `${key}.rps_threshold`,
    },
    max_rejection_probability: {
      default_value: { value: policy.rejectPercentMax },
      runtime_key: `${key}.max_rejection_probability`,
    },
    success_criteria: noted(
      "Failures count, deliberate refusals do not: otherwise a 503 of a breaker, " +
        "of a closed gate or of Headgate would cause more refusals. Outlier " +
        "detection handles dead hosts.",
      {
        http_criteria: {
          http_success_status: [
            { start: 100, end: 500 },
            { start: httpStatuses.serviceUnavailable, end: httpStatuses.serviceUnavailable + 1 },
          ],
        },
        grpc_criteria: { grpc_success_status: grpcSuccess },
      },
    ),
  });
}

/**
 * Disables the filter for a service without it: the value of `envoy.filters.http.admission_control`
 * under typed_per_filter_config. Undefined for the others.
 */
export function admissionControlPerRoute(service: ServicePolicy): TreeMap | undefined {
  return service.admissionControl === undefined ? filterOff() : undefined;
}
