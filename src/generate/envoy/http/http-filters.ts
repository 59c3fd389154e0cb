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

/** An HTTP filter and what it is called in its chain, by which a route may turn it off. */
export interface NamedFilter {
  readonly name: string;
  readonly filter: Tree;
}

/** The HTTP filters that a route may turn off, the router, and the names of the former. */
export interface FilterChain {
  readonly filters: readonly Tree[];
  readonly names: readonly string[];
}

/**
 * The HTTP filters of one listener, in this order: what costs least refuses first; Headgate is
 * asked next; what learns from answers comes last, so that it never takes a refusal of the others
 * for an answer of the service. Those that remove priority headers go before all of them, and stay
 * on (`priority-header`).
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

/** Those that refuse by themselves or ask Headgate: services share them, with settings by route. */
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

/** Those that learn from the answers of all that meet them: they have no settings by route. */
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

/** Begins the names of Envoy's own filters. */
const own = "envoy.filters.http.";

function router(): Tree {
  const type = "envoy.extensions.filters.http.router.v3.Router";
  return extension("envoy.filters.http.router", type);
}
