import type { QuotaPolicy } from "../../../policy/quotas/quota-policy.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { hasFeature, reportOld } from "../base/envoy-features.js";
import { envoyGrpc } from "../base/http-filter.js";
import { isAskedHere } from "../base/sides.js";
import { extension, typed } from "../base/values.js";
import { quotaMatcher } from "./quota-buckets.js";

/** The filter of a quota, and its name in the filter chain. */
interface QuotaFilter {
  readonly name: string;
  readonly quota: QuotaPolicy;
  readonly filter: Tree;
}

/**
 * Returns the filters that admit requests within the assignments of this proxy. There is one for
 * each quota, since a filter puts a request into one bucket, and a request may be in several
 * quotas. Filters of one domain share a stream.
 *
 * At an edge they are disabled, and enabled for the virtual hosts of their services; or they match
 * hosts themselves.
 *
 * Source: envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig.
 */
export function quotaFilters(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): readonly QuotaFilter[] {
  if (!isAskedHere(context)) return [];
  const { quotas } = context.policy;
  return quotas
    .filter((quota) => services.some((service) => isInQuota(quota, service)))
    .map((quota) => {
      reportVersion(quota, context);
      const name = quotaFilterName(quota);
      const own = services.filter((service) => isInQuota(quota, service));
      const hosts = own.flatMap((service) => service.hosts);
      return { name, quota, filter: quotaFilter(quota, hosts, context) };
    });
}

/** Reports whether a quota applies to a service's requests. */
export function isInQuota({ services }: QuotaPolicy, { name }: ServicePolicy): boolean {
  return services === undefined || services.includes(name);
}

/** Returns the name of a quota's filter in the filter chain. */
function quotaFilterName({ name }: Pick<QuotaPolicy, "name">): string {
  return `${quotaFilterPrefix}${name}`;
}

/** Prefix of the names of quota filters. */
const quotaFilterPrefix = "envoy.filters.http.rate_limit_quota.";

function quotaFilter(quota: QuotaPolicy, hosts: readonly string[], context: EnvoyContext): Tree {
  const type = "envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig";
  const own = extension(quotaFilterName(quota), type, {
    rlqs_server: envoyGrpc(context.headgateClusters.quotas),
    domain: quota.domain,
    bucket_matchers: noted(
      "Selects the bucket of a request. A request without a bucket passes.",
      quotaMatcher(quota, context.hasQuotasByHost === true ? hosts : undefined),
    ),
  });
  if (!isOffAtFirst(context)) return own;
  return { ...own, disabled: noted("Enabled by virtual hosts.", true) };
}

/** An edge has virtual hosts of several services, and possibly of others. */
function isOffAtFirst({ role, hasQuotasByHost }: EnvoyContext): boolean {
  return role === "edge" && hasQuotasByHost !== true;
}

/**
 * Enables a service's quotas, by the names of their filters. Empty if they are already enabled.
 *
 * Source: envoy.config.route.v3.FilterConfig.
 */
export function quotasPerRoute(
  service: ServicePolicy,
  context: EnvoyContext,
): Readonly<Record<string, TreeMap>> {
  if (!isOffAtFirst(context) || !isAskedHere(context)) return {};
  const own = context.policy.quotas.filter((quota) => isInQuota(quota, service));
  const on = typed("envoy.config.route.v3.FilterConfig", { config: {} });
  return Object.fromEntries(own.map((quota) => [quotaFilterName(quota), on]));
}

function reportVersion(quota: QuotaPolicy, context: EnvoyContext): void {
  if (hasFeature(context, "quotaFallbacks")) return;
  reportOld(context, {
    service: undefined,
    path: ["quotas", quota.name],
    feature: "quotaFallbacks",
    what: "the quota filter with all its required features",
    instead: "use RLS calls: rateLimit of the service",
  });
}
