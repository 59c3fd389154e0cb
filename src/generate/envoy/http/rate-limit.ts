import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { hasFeature } from "../base/envoy-features.js";
import { allUnless, envoyGrpc, httpFilter } from "../base/http-filter.js";
import { durationText, typed } from "../base/values.js";
import { filterDescriptors, rateLimitEntries } from "./rate-limit-actions.js";

/**
 * Returns the filter that calls Headgate for decisions. Undefined if no service needs any. Routes
 * set the descriptors, so a route without any causes no call.
 *
 * Source: envoy.extensions.filters.http.ratelimit.v3.RateLimit.
 */
export function rateLimitFilter(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): Tree | undefined {
  const first = services.find(({ rateLimit }) => filterDescriptors(rateLimit).length > 0);
  if (first?.rateLimit === undefined) return undefined;
  const { rateLimitTimeoutMs, deniesWithoutAnswer } = context.policy.proxies.headgate;
  return httpFilter("ratelimit", "RateLimit", {
    domain: noted("Each route sets its own domain.", first.rateLimit.domain),
    stat_prefix: "headgate",
    timeout: noted(
      "Headgate receives this deadline and answers before it. A late answer costs " +
        "a stream reset.",
      durationText(rateLimitTimeoutMs),
    ),
    failure_mode_deny: noted(
      deniesWithoutAnswer
        ? "Without an answer, the request is refused with the status below."
        : "Without an answer, the request passes.",
      deniesWithoutAnswer,
    ),
    status_on_error: deniesWithoutAnswer ? { code: "ServiceUnavailable" } : undefined,
    ...runtimeKeys(context),
    enable_x_ratelimit_headers: "DRAFT_VERSION_03",
    enable_retry_after_header: hasFeature(context, "retryAfterHeader") ? true : undefined,
    rate_limited_as_resource_exhausted: noted(
      "gRPC callers get RESOURCE_EXHAUSTED instead of UNAVAILABLE, which they would retry.",
      true,
    ),
    rate_limit_service: {
      transport_api_version: "V3",
      grpc_service: envoyGrpc(context.headgateClusters.decisions),
    },
  });
}

/** Envoys without these fields read the same runtime keys. */
function runtimeKeys(context: EnvoyContext): TreeMap {
  if (!hasFeature(context, "rateLimitRuntimeKeys")) return {};
  return {
    filter_enabled: noted(
      "The share of requests that are checked, and the share for which the answer is enforced.",
      allUnless("ratelimit.http_filter_enabled"),
    ),
    filter_enforced: allUnless("ratelimit.http_filter_enforcing"),
  };
}

/**
 * Returns the rate limits of a service's routes: the value of `envoy.filters.http.ratelimit` under
 * typed_per_filter_config. Undefined if there are none. Before Envoy 1.33 it only sets the domain,
 * and `virtualHostRateLimits` sets the rest.
 *
 * Source: envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute.
 */
export function rateLimitPerRoute(
  service: ServicePolicy,
  context: EnvoyContext,
): TreeMap | undefined {
  const { rateLimit } = service;
  if (rateLimit === undefined || filterDescriptors(rateLimit).length === 0) return undefined;
  const isHere = hasFeature(context, "rateLimitsPerRoute");
  return typed("envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute", {
    domain: rateLimit.domain,
    rate_limits: isHere ? rateLimitEntries(service, context) : undefined,
  });
}

/**
 * Returns the `rate_limits` of a service's virtual host, for Envoys that accept them nowhere else.
 * Undefined for all others, which would ignore costs there.
 */
export function virtualHostRateLimits(
  service: ServicePolicy,
  context: EnvoyContext,
): readonly Tree[] | undefined {
  if (hasFeature(context, "rateLimitsPerRoute")) return undefined;
  if (filterDescriptors(service.rateLimit).length === 0) return undefined;
  return rateLimitEntries(service, context);
}
