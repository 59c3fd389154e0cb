import { hasCriticalRoutes } from "../../../policy/services/configured-share.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { isAskedHere, isHeldHere } from "../base/sides.js";
import { durationText } from "../base/values.js";
import { hashPolicy } from "../cluster/load-balancing.js";
import { clusterName } from "../cluster/upstream-cluster.js";
import { adaptiveConcurrencyPerRoute } from "./adaptive-concurrency.js";
import { admissionControlPerRoute } from "./admission-control.js";
import { extProcPerRoute, usesExtProc } from "./ext-proc.js";
import { fallbackRoutes } from "./fallback-routes.js";
import { localRateLimitPerRoute } from "./local-rate-limit.js";
import { priorityHeaderPerHost } from "./priority-header.js";
import { isInQuota, quotasPerRoute } from "./quota-filter.js";
import { rateLimitPerRoute, virtualHostRateLimits } from "./rate-limit.js";
import { hedgePolicy, retryPolicy } from "./retries.js";
import { roomRoutes } from "./room-routes.js";
import { type RouteClass, routeClasses } from "./route-classes.js";
import { allOff, shedRoute, shedRoutes, shedsHere } from "./shed-routes.js";
import { measuredHost, servedMsMax, usageFilterName, usagePerRoute } from "./usage.js";

/** The place of a virtual host. */
interface VirtualHostPlace {
  /** Hosts that it serves. */
  readonly domains: readonly string[];
  /** Names of the HTTP filters in front of it, except those that remove priority headers. */
  readonly filters: readonly string[];
}

/**
 * Returns the routes of one service: by class if classes are distinguished, otherwise one for all.
 * Settings for its requests are set once, for all of its routes.
 *
 * Source: envoy.config.route.v3.VirtualHost.
 */
export function virtualHost(
  service: ServicePolicy,
  context: EnvoyContext,
  { domains, filters }: VirtualHostPlace,
): Tree {
  const { classes, leftOut } = routeClasses(service.priority);
  const isShed = shedsHere(service, context);
  const own = { context, filters };
  const routes =
    context.options.form === "fragments"
      ? [
          // Next to a user's own routes: further forwarding routes would bypass their settings.
          ...shedRoutes(service, context, filters),
          ...classes.slice(-1).map((rest) => route(rest, service, own)),
        ]
      : neededClasses(classes, service, context).flatMap((one) => [
          ...(isShed && one.mayShed ? [shedRoute(one, service, filters)] : []),
          route(one, service, own),
        ]);
  const tree: TreeMap = {
    name: service.name,
    domains,
    retry_policy:
      service.retries && isHeldHere(service, context)
        ? retryPolicy(service.retries, context.options.envoyVersion)
        : undefined,
    hedge_policy: isHeldHere(service, context) ? hedgePolicy(service.retries) : undefined,
    rate_limits: isAskedHere(context) ? virtualHostRateLimits(service, context) : undefined,
    ...measuredHost(service, context),
    typed_per_filter_config: perService(service, context, filters),
    routes: [
      ...roomRoutes(service, context, { filters }),
      ...fallbackRoutes(service, context, routeAction(service)),
      ...routes,
    ],
  };
  if (!isShed || leftOut.length === 0) return tree;
  return noted(`Left to Headgate: ${leftOut.join("; ")}.`, tree);
}

/**
 * Returns the classes that need routes of their own because they are treated unlike the rest:
 * bypassed paths if anything is requested or refused; critical ones if requests are shed or the
 * policy makes any critical, since every policy has authentication paths.
 */
function neededClasses(
  classes: readonly RouteClass[],
  service: ServicePolicy,
  context: EnvoyContext,
): readonly RouteClass[] {
  const isShed = shedsHere(service, context);
  const isUrgent = isHeldHere(service, context) && (isShed || hasCriticalRoutes(service));
  const isCounted = context.policy.quotas.some((quota) => isInQuota(quota, service));
  const isAskedFor =
    service.rateLimit !== undefined || usesExtProc(service, context.policy) || isCounted;
  const isAsked = isAskedHere(context) && isAskedFor;
  const treatment = ({ priority, mayShed }: RouteClass): string => {
    if (priority === "bypass") return isAsked || isUrgent ? "bypass" : "plain";
    if (priority === "critical") return isUrgent ? "critical" : "plain";
    return isShed && mayShed ? `shed as ${priority}` : "plain";
  };
  const [rest] = classes.slice(-1);
  if (rest === undefined) return [];
  const others = classes.slice(0, -1);
  const last = others.findLastIndex((one) => treatment(one) !== treatment(rest));
  return [...others.slice(0, last + 1), rest];
}

/** Returns the route that forwards a class's requests to the service. */
function route(
  { words, name, match, priority }: RouteClass,
  service: ServicePolicy,
  { context, filters }: { readonly context: EnvoyContext; readonly filters: readonly string[] },
): Tree {
  const isHigh = priority === "bypass" || priority === "critical";
  const isUrgent = isHigh && isHeldHere(service, context);
  const tree: TreeMap = {
    name: `${service.name}-${name}`,
    match,
    route: {
      cluster: clusterName(service, context),
      ...routeAction(service, isUrgent ? "HIGH" : undefined),
    },
    typed_per_filter_config: priority === "bypass" ? allOff(filters) : undefined,
  };
  return name === "rest" ? tree : noted(`${words}.`, tree);
}

/** Settings of a service's requests, whichever cluster they are sent to. */
export function routeAction(service: ServicePolicy, priority?: "HIGH"): TreeMap {
  const { idleMs, maxStreamMs } = service.timeouts;
  return {
    timeout: durationText(servedMsMax(service)),
    idle_timeout: idleMs === undefined ? undefined : durationText(idleMs),
    max_stream_duration: maxStreamMs && { max_stream_duration: durationText(maxStreamMs) },
    priority,
    hash_policy: hashPolicy(service.loadBalancing),
    upgrade_configs: upgradeConfigs(service),
  };
}

function upgradeConfigs({ upgrades }: ServicePolicy): readonly Tree[] | undefined {
  return upgrades.length === 0
    ? undefined
    : upgrades.map((protocol) => ({ upgrade_type: protocol }));
}

/** Returns the filters' settings for a service, except for filters that are absent. */
function perService(
  service: ServicePolicy,
  context: EnvoyContext,
  filters: readonly string[],
): TreeMap | undefined {
  const asked: Readonly<Record<string, TreeMap | undefined>> = isAskedHere(context)
    ? {
        "envoy.filters.http.local_ratelimit": localRateLimitPerRoute(service, context),
        "envoy.filters.http.ratelimit": rateLimitPerRoute(service, context),
        "envoy.filters.http.ext_proc": extProcPerRoute(service, context),
        [usageFilterName]: usagePerRoute(service),
        ...quotasPerRoute(service, context),
      }
    : {};
  const reported: Readonly<Record<string, TreeMap | undefined>> = {
    ...asked,
    "envoy.filters.http.adaptive_concurrency": adaptiveConcurrencyPerRoute(service),
    "envoy.filters.http.admission_control": admissionControlPerRoute(service),
  };
  const entries = filters.map((name) => [name, reported[name]] as const);
  const known = [
    ...Object.entries(priorityHeaderPerHost(service, context)),
    ...entries.filter(([, config]) => config !== undefined),
  ];
  return known.length === 0 ? undefined : Object.fromEntries(known);
}
