import type { ServicePolicy } from "../../policy/service-policy.js";
import type { Tree } from "../document.js";
import { adaptiveConcurrencyFilter } from "./adaptive-concurrency.js";
import { admissionControlFilter } from "./admission-control.js";
import type { EnvoyContext } from "./context.js";
import { extProcFilter } from "./ext-proc.js";
import { localRateLimitFilter } from "./local-rate-limit.js";
import { quotaFilters } from "./quota-filter.js";
import { rateLimitFilter } from "./rate-limit.js";
import { isAskedHere, isHeldHere } from "./sides.js";
import { extension } from "./values.js";

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
  const asked = isAskedHere(context) ? services : [];
  const held = services.filter((service) => isHeldHere(service, context));
  const quotas = quotaFilters(asked, context);
  const rows: readonly (readonly [name: string, filter: Tree | undefined])[] = [
    [`${own}local_ratelimit`, localRateLimitFilter(asked, context)],
    ...quotas.map(({ name, filter }) => [name, filter] as const),
    [`${own}ratelimit`, rateLimitFilter(asked, context)],
    [`${own}ext_proc`, extProcFilter(asked, context)],
    [`${own}adaptive_concurrency`, adaptiveConcurrencyFilter(held, context)],
    [`${own}admission_control`, admissionControlFilter(held, context)],
  ];
  const used = rows.filter(([, filter]) => filter !== undefined);
  return {
    filters: [...used.flatMap(([, filter]) => filter ?? []), router()],
    names: used.map(([name]) => name),
  };
}

/** Begins the names of Envoy's own filters. */
const own = "envoy.filters.http.";

function router(): Tree {
  const type = "envoy.extensions.filters.http.router.v3.Router";
  return extension("envoy.filters.http.router", type);
}
