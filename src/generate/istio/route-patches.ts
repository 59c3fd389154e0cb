import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { defaultBlocks } from "../../policy/upstream/default-upstream.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";
import { asMap, itemsOf, memberOf, withMember } from "../base/tree-members.js";
import { durationText } from "../envoy/base/values.js";
import { fallbackRoutes } from "../envoy/http/fallback-routes.js";
import { hedgePolicy } from "../envoy/http/retries.js";
import { roomRoutes } from "../envoy/http/room-routes.js";
import { shedRoutes } from "../envoy/http/shed-routes.js";
import { measuredHost, reportBodyLimit } from "../envoy/http/usage.js";
import { routeAction, virtualHost } from "../envoy/http/virtual-host.js";
import { firstRoutePatches, routeMergePatch, virtualHostPatch } from "./envoy-filter.js";
import { type FilterNames, filterNamesAt } from "./filter-patches.js";
import { inboundCluster } from "./mesh-name.js";
import { type IstioPlace, virtualHostsAt } from "./place.js";
import { notSkipped } from "./skipping-filter.js";
import { retryWaits } from "./virtual-service.js";

/** Returns what a service's routes at a place have in addition to those that Istio makes. */
export function routePatches(service: ServicePolicy, place: IstioPlace): readonly Tree[] {
  const names = filterNamesAt(service, place);
  reportBodyLimit(service, place.envoy);
  const reported = reportedTo(service, place, names);
  const extras = routeExtras(service, place);
  const first = firstRoutes(service, place, names);
  if (reported === undefined && extras === undefined && first.length === 0) return [];
  const hosts = virtualHostsAt(service, place);
  if (hosts.length === 0) reportNoHosts(service, place);
  return hosts.flatMap((host) => [
    ...(reported === undefined ? [] : [virtualHostPatch(place, host, reported)]),
    ...(extras === undefined ? [] : [routeMergePatch(place, host, { route: extras })]),
    ...firstRoutePatches(place, host, first),
  ]);
}

/** Returns the host as in our own proxies. Its last route is the one that Istio already has. */
function virtualHostAt(service: ServicePolicy, place: IstioPlace, { shared }: FilterNames): Tree {
  return virtualHost(service, place.envoy, { domains: [], filters: shared });
}

/** Returns routes that precede all others of a service. */
function firstRoutes(
  service: ServicePolicy,
  place: IstioPlace,
  names: FilterNames,
): readonly Tree[] {
  const filters = [...names.shared, ...names.own];
  const leading = [
    ...roomRoutes(service, place.envoy, { filters }),
    ...fallbackRoutes(service, place.envoy, routeAction(service)),
  ];
  if (place.context !== "SIDECAR_INBOUND") {
    return [...leading, ...shedRoutes(service, place.envoy, filters)];
  }
  const routes = itemsOf(memberOf(virtualHostAt(service, place, names), "routes"));
  // The leading routes come first, and need no routes before them.
  return [...leading, ...ownRoutes(routes.slice(leading.length), service, place)];
}

/** Reports whether some of the first routes use Envoy's priority HIGH. */
export function hasUrgentRoutes(service: ServicePolicy, place: IstioPlace): boolean {
  return firstRoutes(service, place, filterNamesAt(service, place)).some((route) => {
    return asMap(memberOf(route, "route"))?.["priority"] !== undefined;
  });
}

/** Returns the filters' settings for a service, for all of its routes. */
function reportedTo(
  service: ServicePolicy,
  place: IstioPlace,
  names: FilterNames,
): TreeMap | undefined {
  const whole = virtualHostAt(service, place, names);
  const limits = memberOf(whole, "rate_limits");
  const measured = measuredHost(service, place.envoy);
  const filters: TreeMap = {
    ...asMap(memberOf(whole, "typed_per_filter_config")),
    ...Object.fromEntries(names.own.map((name) => [name, notSkipped()])),
  };
  const isReported = Object.keys(filters).length > 0;
  const isMeasured = Object.values(measured).some((value) => value !== undefined);
  if (limits === undefined && !isReported && !isMeasured) return undefined;
  return {
    rate_limits: limits,
    ...measured,
    typed_per_filter_config: isReported ? filters : undefined,
  };
}

function reportNoHosts({ name }: ServicePolicy, { context, envoy }: IstioPlace): void {
  // Without a mesh name: already reported where the service's own objects are made.
  if (context !== "GATEWAY") return;
  envoy.report({
    id: "HG343",
    spot: { service: name, path: ["hosts"] },
    message:
      "gateways identify services by hosts, and this service has none, so it gets " +
      "no settings there",
    hint: "add hosts: [shop.example.com], or generate with --role sidecar",
    severity: "warning",
  });
}

/** Route settings that neither DestinationRule nor VirtualService can express. */
function routeExtras(service: ServicePolicy, { context, envoy }: IstioPlace): TreeMap | undefined {
  const { idleMs, maxStreamMs } = service.timeouts;
  const isCaller = context !== "SIDECAR_INBOUND";
  const waits = isCaller ? retryWaits(service, envoy.options.envoyVersion) : undefined;
  const upgrades = upgradeChanges(service.upgrades);
  const extras: TreeMap = {
    idle_timeout: idleMs === undefined ? undefined : durationText(idleMs),
    max_stream_duration: maxStreamMs && { max_stream_duration: durationText(maxStreamMs) },
    upgrade_configs: upgrades,
    hedge_policy: isCaller ? hedgePolicy(service.retries) : undefined,
    retry_policy: waits && noted("Timeouts that Istio does not support fully.", waits),
  };
  return Object.values(extras).every((value) => value === undefined) ? undefined : extras;
}

/** Istio allows websocket by default, and no other protocol. */
function upgradeChanges(upgrades: readonly string[]): readonly Tree[] | undefined {
  const further = upgrades.filter((protocol) => !defaultBlocks.upgrades.includes(protocol));
  const refused = defaultBlocks.upgrades.filter((protocol) => !upgrades.includes(protocol));
  if (further.length + refused.length === 0) return undefined;
  return [
    ...further.map((protocol) => ({ upgrade_type: protocol })),
    ...refused.map((protocol) => ({ upgrade_type: protocol, enabled: false })),
  ];
}

/**
 * Returns routes for classes that are treated unlike the rest. They precede Istio's route for a
 * service's own sidecar, which users do not configure. Other routes are the user's: `shedRoutes`.
 */
function ownRoutes(
  routes: readonly Tree[],
  service: ServicePolicy,
  place: IstioPlace,
): readonly Tree[] {
  const own = routes.slice(0, -1);
  const isForwarding = (route: Tree): boolean => memberOf(route, "route") !== undefined;
  if (!own.some(isForwarding)) return own;
  const cluster = inboundCluster(service);
  if (cluster === undefined) {
    reportNoCluster(service, place, own);
    // Without the routes before them, they would refuse requests that must not be refused.
    return [];
  }
  return own.map((route) => {
    const action = memberOf(route, "route");
    return action === undefined
      ? route
      : withMember(route, "route", withMember(action, "cluster", cluster));
  });
}

function reportNoCluster(
  { name }: ServicePolicy,
  { envoy }: IstioPlace,
  routes: readonly Tree[],
): void {
  const isShedding = routes.some((route) => memberOf(route, "direct_response") !== undefined);
  envoy.report({
    id: "HG344",
    spot: { service: name, path: ["clusters"] },
    message: isShedding
      ? "the service's sidecar must recognize requests that are not refused, and the " +
        "name of its cluster contains the container port"
      : "the service's sidecar treats bypassed and critical requests like all " +
        "others, because the name of its cluster contains the container port",
    hint: 'add clusters: ["inbound|8080||"], with that port',
    severity: isShedding ? "error" : "warning",
  });
}
