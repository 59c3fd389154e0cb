import { localRateLimitKey } from "../../../core/feedback/runtime-keys.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { hasFeature } from "../base/envoy-features.js";
import { allUnless, httpFilter } from "../base/http-filter.js";
import { durationText, typed } from "../base/values.js";
import { filterDescriptors } from "./rate-limit-actions.js";

const message = "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit";

/**
 * Returns the filter, whose buckets are set by routes. Undefined if no service has one.
 *
 * Source: envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit.
 */
export function localRateLimitFilter(
  services: readonly ServicePolicy[],
  _context: EnvoyContext,
): Tree | undefined {
  if (services.every(({ localRateLimit }) => localRateLimit === undefined)) return undefined;
  const statPrefix = noted("Each route has its own bucket, or none.", "headgate");
  return httpFilter("local_ratelimit", "LocalRateLimit", { stat_prefix: statPrefix });
}

/**
 * Returns a service's bucket in each proxy: the value of `envoy.filters.http.local_ratelimit` under
 * typed_per_filter_config of its virtual host, so that all of its routes share it. Undefined for
 * services without one.
 */
export function localRateLimitPerRoute(
  service: ServicePolicy,
  context: EnvoyContext,
): TreeMap | undefined {
  const { name, localRateLimit: policy } = service;
  if (policy === undefined) return undefined;
  const isBackstop = policy.when === "withoutHeadgate";
  const all = allUnless(localRateLimitKey(name));
  // A second set of headers would contradict Headgate's own x-ratelimit-* headers.
  const isAlone = isBackstop || filterDescriptors(service.rateLimit).length === 0;
  const hasRetryAfter = hasFeature(context, "retryAfterHeader");
  return typed(message, {
    stat_prefix: name,
    token_bucket: {
      max_tokens: policy.burst,
      tokens_per_fill: policy.requests,
      fill_interval: durationText(policy.perMs),
    },
    filter_enabled: isBackstop
      ? noted(
          "While Headgate is connected, its runtime layer sets this to 0. It " +
            "applies HEADGATE_LAYER_TTL_MS (15 s) after Headgate has gone.",
          all,
        )
      : all,
    filter_enforced: all,
    enable_x_ratelimit_headers: isAlone ? "DRAFT_VERSION_03" : undefined,
    enable_retry_after_header: hasRetryAfter ? true : undefined,
    response_headers_to_add: hasRetryAfter ? undefined : [retryAfter(policy.perMs)],
    rate_limited_as_resource_exhausted: true,
  });
}

/** Added only to refusals: whole seconds until the bucket is filled again. */
function retryAfter(perMs: number): Tree {
  const value = String(Math.max(1, Math.ceil(perMs / 1_000)));
  return {
    header: { key: "retry-after", value },
    append_action: "OVERWRITE_IF_EXISTS_OR_ADD",
  };
}
