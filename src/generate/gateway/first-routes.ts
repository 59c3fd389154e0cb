import type { ServicePolicy } from "../../policy/service-policy.js";
import type { Tree, TreeMap } from "../document.js";
import type { EnvoyContext } from "../envoy/context.js";
import { extProcPerRoute, usesExtProc } from "../envoy/ext-proc.js";
import { filterDescriptors } from "../envoy/rate-limit-actions.js";
import { virtualHost } from "../envoy/routes.js";
import { asMap, itemsOf, memberOf, withMember } from "../tree-members.js";
import { addedFilterNames } from "./added-filters.js";
import { xdsCluster, xdsExtProc } from "./gateway-names.js";

/**
 * Routes that come before those of a service's HTTPRoute: of classes that are shed, and of those
 * that never are. None where nothing is shed: Envoy Gateway's own routes then take all requests.
 */
export function firstRoutes(service: ServicePolicy, context: EnvoyContext): readonly Tree[] {
  const { rateLimit } = service;
  // Limits that filters ask for are Envoy Gateway's own here.
  const asking = { ...service, rateLimit: rateLimit?.inExtProc === true ? rateLimit : undefined };
  const whole = virtualHost(asking, context, {
    domains: [],
    filters: addedFilterNames(context),
  });
  // The last route is the one that the HTTPRoute makes.
  const own = itemsOf(memberOf(whole, "routes")).slice(0, -1);
  const isShed = own.some((route) => memberOf(route, "direct_response") !== undefined);
  if (!isShed) return [];
  if (filterDescriptors(service.rateLimit).length > 0) reportUnlimited(service, context);
  return own.map((route) => ownRoute(route, service, context));
}

/**
 * Filters of Envoy Gateway are off where a route does not turn them on, so that what is refused or
 * bypassed asks nobody.
 */
function ownRoute(route: Tree, service: ServicePolicy, context: EnvoyContext): Tree {
  const action = asMap(memberOf(route, "route"));
  if (action === undefined) return route;
  const forwarding = withMember(route, "route", {
    ...action,
    cluster: xdsCluster(service, context),
  });
  const isBypass = String(memberOf(route, "name")).startsWith(`${service.name}-bypass-`);
  if (isBypass || !usesExtProc(service)) return forwarding;
  return withMember(forwarding, "typed_per_filter_config", askingIn(service, context));
}

/** What turns the filter on for a route. */
function askingIn(service: ServicePolicy, context: EnvoyContext): TreeMap {
  const { filter } = xdsExtProc(service, context);
  return { [filter]: extProcPerRoute(service, context) };
}

function reportUnlimited({ name }: ServicePolicy, { report }: EnvoyContext): void {
  report({
    id: "HG355",
    spot: { service: name, path: ["rateLimit"] },
    message:
      "critical requests have routes of their own here, and Envoy Gateway's rate limits are not " +
      "on them",
    hint: "rateLimit: {inExtProc: true}, and all of the service's requests are charged",
    severity: "error",
  });
}
