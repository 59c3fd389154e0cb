import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { AdaptiveConcurrencyPolicy } from "../../../policy/upstream/adaptive-concurrency.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { hasFeature, reportOld } from "../base/envoy-features.js";
import { httpFilter } from "../base/http-filter.js";
import { isHeldHere } from "../base/sides.js";
import { soleSetting } from "../base/sole-setting.js";
import { durationText, filterOff } from "../base/values.js";

/** The runtime key that enables or disables all such filters of a process. */
const enabledKey = "adaptive_concurrency.enabled";

/**
 * Returns Envoy's own gradient controller. Undefined if no service has one. It applies to all
 * services of a listener and has no settings by route, so different settings are a problem.
 *
 * Source: envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency.
 */
export function adaptiveConcurrencyFilter(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): Tree | undefined {
  const policy = soleSetting(services, context, {
    id: "HG322",
    name: "adaptiveConcurrency",
    what: "adaptive concurrency",
    of: ({ adaptiveConcurrency }) => adaptiveConcurrency,
  });
  if (policy === undefined) return undefined;
  return httpFilter("adaptive_concurrency", "AdaptiveConcurrency", {
    enabled: noted("Switches the filter off at run time.", {
      default_value: true,
      runtime_key: enabledKey,
    }),
    gradient_controller_config: {
      sample_aggregate_percentile: { value: policy.percentile },
      concurrency_limit_params: {
        max_concurrency_limit: policy.limitMax,
        min_concurrency_limit: hasFeature(context, "gradientFloor") ? policy.limitMin : undefined,
        concurrency_update_interval: durationText(policy.updateMs),
      },
      min_rtt_calc_params: minRttParams(policy, services, context),
    },
  });
}

/**
 * Disables the filter for services without it: the value of
 * `envoy.filters.http.adaptive_concurrency` under typed_per_filter_config. Undefined for others.
 */
export function adaptiveConcurrencyPerRoute(service: ServicePolicy): TreeMap | undefined {
  return service.adaptiveConcurrency === undefined ? filterOff() : undefined;
}

function minRttParams(
  { minRtt, limitMin }: AdaptiveConcurrencyPolicy,
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): Tree {
  const buffer = { value: minRtt.bufferPercent };
  if (minRtt.kind === "sampled") {
    const { everyMs, requestCount, jitterPercent } = minRtt;
    const why = "While it measures, it admits min_concurrency requests and refuses the rest.";
    return noted(why, {
      interval: durationText(everyMs),
      request_count: requestCount,
      jitter: { value: jitterPercent },
      min_concurrency: limitMin,
      buffer,
    });
  }
  if (!hasFeature(context, "fixedMinRtt")) {
    reportOld(context, {
      service: services.find(({ adaptiveConcurrency }) => adaptiveConcurrency)?.name,
      path: ["adaptiveConcurrency", "minRtt"],
      feature: "fixedMinRtt",
      what: "a fixed minRtt",
      instead: "use a sampled minRtt",
    });
  }
  const why =
    "Never measured: with a driven limit, the measurement would record the latency of that limit.";
  const fields: TreeMap = {
    fixed_value: durationText(minRtt.ms),
    min_concurrency: limitMin,
    buffer,
  };
  return noted(why, fields);
}

/** Reports services of one proxy that pin its limit, because a pin applies to the whole process. */
export function reportSharedPins(services: readonly ServicePolicy[], context: EnvoyContext): void {
  const { report } = context;
  const pinned = services.filter((service) => {
    const isPinned = service.concurrency?.feedback.includes("adaptiveConcurrency") === true;
    return isPinned && isHeldHere(service, context);
  });
  if (pinned.length < 2) return;
  for (const { name: service } of pinned) {
    report({
      id: "HG324",
      spot: { service, path: ["concurrency", "feedback"] },
      message: "a proxy has one driven limit for all its filters, and several services use it",
      hint: "feedback: [circuitBreakers], which each service has separately",
    });
  }
}
