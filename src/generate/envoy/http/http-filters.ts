import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { Tree } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { isAskedHere, isHeldHere } from "../base/sides.js";
import { extension } from "../base/values.js";
import { adaptiveConcurrencyFilter, reportSharedPins } from "./adaptive-concurrency.js";
import { admissionControlFilter } from "./admission-control.js";
import { extProcFilter } from "./ext-proc.js";
import { localRateLimitFilter } from "./local-rate-limit.js";
import { quotaFilters } from "./quota-filter.js";
import { rateLimitFilter } from "./rate-limit.js";
import { usageFilter, usageFilterName } from "./usage.js";

/** An HTTP filter and its name in the filter chain, by which a route can disable it. */
export interface NamedFilter {
  readonly name: string;
  readonly filter: Tree;
}

/** The HTTP filters that a route can disable, the router, and the names of the former. */
export interface FilterChain {
  readonly filters: readonly Tree[];
  readonly names: readonly string[];
}

/**
 * Returns the HTTP filters of one listener, in this order: the cheapest ones refuse first; Headgate
 * is called next; filters that learn from responses come last, so that they never mistake a refusal
 * for a response of the service. Filters that remove priority headers precede all of them and stay
 * enabled (`priority-header`).
 */
export function httpFilters(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): FilterChain {
  reportSharedPins(services, context);
  const used = [...askingFilters(services, context), ...learningFilters(services, context)];
  return {
    filters: [...used.map(({ filter }) => filter), router()],
    names: used.map(({ name }) => name),
  };
}

/** Filters that refuse by themselves or call Headgate. Shared by services, with route settings. */
export function askingFilters(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): readonly NamedFilter[] {
  const asked = isAskedHere(context) ? services : [];
  const usage = usageFilter(asked, context);
  return [
    ...named("local_ratelimit", localRateLimitFilter(asked, context)),
    ...quotaFilters(asked, context),
    ...named("ratelimit", rateLimitFilter(asked, context)),
    ...named("ext_proc", extProcFilter(asked, context)),
    ...(usage === undefined ? [] : [{ name: usageFilterName, filter: usage }]),
  ];
}

/** Filters that learn from the responses to all requests. They have no settings by route. */
export function learningFilters(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): readonly NamedFilter[] {
  const held = services.filter((service) => isHeldHere(service, context));
  return [
    ...named("adaptive_concurrency", adaptiveConcurrencyFilter(held, context)),
    ...named("admission_control", admissionControlFilter(held, context)),
  ];
}

function named(name: string, filter: Tree | undefined): readonly NamedFilter[] {
  return filter === undefined ? [] : [{ name: `${own}${name}`, filter }];
}

/** Prefix of the names of Envoy's own filters. */
const own = "envoy.filters.http.";

function router(): Tree {
  const type = "envoy.extensions.filters.http.router.v3.Router";
  return extension("envoy.filters.http.router", type);
}
