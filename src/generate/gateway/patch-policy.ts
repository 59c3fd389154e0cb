import { observesBodies } from "../../policy/budgets/budget-policy.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { type ObjectPlace, objectName, specObject } from "../base/custom-object.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";
import { asMap, memberOf, withMember } from "../base/tree-members.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { typed } from "../envoy/base/values.js";
import { adaptiveConcurrencyFilter, reportSharedPins } from "../envoy/http/adaptive-concurrency.js";
import { admissionControlFilter } from "../envoy/http/admission-control.js";
import { headerBounds } from "../envoy/http/listener.js";
import { localRateLimitFilter, localRateLimitPerRoute } from "../envoy/http/local-rate-limit.js";
import { localReplies } from "../envoy/http/local-replies.js";
import { priorityHeaderFilters, priorityHeaderPerHost } from "../envoy/http/priority-header.js";
import { quotaFilters, quotasPerRoute } from "../envoy/http/quota-filter.js";
import { roomRoutes } from "../envoy/http/room-routes.js";
import { shedRoutes } from "../envoy/http/shed-routes.js";
import { measuredHost, usageFilter, usageFilterName, usagePerRoute } from "../envoy/http/usage.js";
import { extProcOf, serviceExtProc } from "./extension-policy.js";
import {
  envoyGatewayVersion,
  gatewayGroup,
  gatewayName,
  xdsListeners,
  xdsVirtualHosts,
} from "./gateway-names.js";

const manager = "envoy.filters.network.http_connection_manager";

/**
 * Returns patches of Envoy's configuration for settings that Envoy Gateway cannot express and that
 * all services of the Gateway share. Undefined if there are none.
 *
 * Source: Envoy Gateway, EnvoyPatchPolicy.
 */
export function patchPolicy(context: EnvoyContext): TreeMap | undefined {
  const { services } = context.policy;
  const patches = [
    ...headerPatches(context),
    ...priorityFilterPatches(services, context),
    ...filterPatches(services, context),
  ];
  const isPatched = services.some((service) => servicePatches(service, context).length > 0);
  if (patches.length === 0 && !isPatched) return undefined;
  reportListeners(context);
  return patchObject(gatewayName(context), context, [...repliesPatches(context), ...patches]);
}

/**
 * Returns the patches of one service. They are a separate object, because a cluster accepts objects
 * of at most 1.5 MiB, and `kubectl apply` less.
 */
export function servicePatchPolicy(
  service: ServicePolicy,
  context: EnvoyContext,
): TreeMap | undefined {
  const patches = servicePatches(service, context);
  if (patches.length === 0) return undefined;
  const { name, namespace } = gatewayName(context);
  const place = { name: objectName(`${name}-${service.name}`), namespace };
  return patchObject(place, context, patches);
}

function patchObject(place: ObjectPlace, context: EnvoyContext, patches: readonly Tree[]): TreeMap {
  const { name } = gatewayName(context);
  return specObject({ apiVersion: envoyGatewayVersion, kind: "EnvoyPatchPolicy" }, place, {
    targetRef: { group: gatewayGroup, kind: "Gateway", name },
    type: "JSONPatch",
    jsonPatches: patches,
  });
}

/** Unnamed listeners are not patched, and most Gateways also have a listener for HTTPS. */
function reportListeners({ policy, report }: EnvoyContext): void {
  if (policy.proxies.gateway.listeners !== undefined) return;
  report({
    id: "HG367",
    spot: { service: undefined, path: ["proxies", "gateway", "listeners"] },
    message:
      "the Gateway's listeners are not named, so patches apply only to one called " +
      "http on port 80",
    hint: "listeners: [{name: http, port: 80}, {name: https, port: 443}], as the Gateway has them",
  });
}

/** Before Envoy Gateway's own filters. Each patch inserts its filter at the front. */
function priorityFilterPatches(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): readonly Tree[] {
  // Without hosts, it is enabled for none, which is reported.
  const reached = services.filter(({ hosts }) => hosts.length > 0);
  return priorityHeaderFilters(reached, context)
    .toReversed()
    .flatMap((value) =>
      listenerPatches(context, {
        op: "add",
        jsonPath: `..filters[?(@.name=='${manager}')].typed_config`,
        path: "/http_filters/0",
        value,
      }),
    );
}

/** Each filter is inserted right before the router, after the filters before it. */
function filterPatches(services: readonly ServicePolicy[], context: EnvoyContext): readonly Tree[] {
  return addedFilters(services, context).flatMap((value) =>
    listenerPatches(context, {
      op: "add",
      jsonPath: "..http_filters[?(@.name=='envoy.filters.http.router')]",
      value,
    }),
  );
}

function repliesPatches(context: EnvoyContext): readonly Tree[] {
  return firstNoted(
    "Every response of this proxy that sheds load carries retry-after.",
    listenerPatches(context, {
      op: "add",
      jsonPath: `..filters[?(@.name=='${manager}')].typed_config`,
      path: "/local_reply_config",
      value: localReplies(context),
    }),
  );
}

/** `common_http_protocol_options` always exists at Envoy Gateway. */
function headerPatches(context: EnvoyContext): readonly Tree[] {
  const { max_request_headers_kb, common_http_protocol_options: common } = headerBounds(
    context.policy.proxies.listener,
  );
  const fields = [
    ["/max_request_headers_kb", max_request_headers_kb],
    ...Object.entries(asMap(common) ?? {}).map(
      ([name, value]) => [`/common_http_protocol_options/${name}`, value] as const,
    ),
  ] as const;
  return fields.flatMap(([path, value]) =>
    value === undefined
      ? []
      : listenerPatches(context, {
          op: "add",
          jsonPath: `..filters[?(@.name=='${manager}')].typed_config`,
          path,
          value,
        }),
  );
}

/** Applies an operation to each of Envoy's listeners. */
function listenerPatches(context: EnvoyContext, operation: TreeMap): readonly Tree[] {
  return xdsListeners(context).map((name) => ({
    type: "type.googleapis.com/envoy.config.listener.v3.Listener",
    name,
    operation,
  }));
}

function firstNoted(words: string, trees: readonly Tree[]): readonly Tree[] {
  return trees.map((tree, index) => (index === 0 ? noted(words, tree) : tree));
}

function servicePatches(service: ServicePolicy, context: EnvoyContext): readonly Tree[] {
  return [
    ...extProcPatches(service, context),
    ...priorityPatches(service, context),
    ...bucketPatches(service, context),
    ...quotaPatches(service, context),
    ...usagePatches(service, context),
    ...protectionPatches(service, context),
    ...routePatches(service, context),
  ];
}

function extProcPatches(service: ServicePolicy, context: EnvoyContext): readonly Tree[] {
  const value = extProcOf(service, context);
  if (value === undefined) return [];
  const { filter } = serviceExtProc(service, context);
  const patches = listenerPatches(context, {
    op: "replace",
    jsonPath: `..http_filters[?(@.name=='${filter}')]`,
    value,
  });
  return firstNoted(
    `Settings that the EnvoyExtensionPolicy of ${service.name} cannot express.`,
    patches,
  );
}

/** Enables the filters for the hosts of their service, whatever routes these have. */
function priorityPatches(service: ServicePolicy, context: EnvoyContext): readonly Tree[] {
  const own = Object.entries(priorityHeaderPerHost(service, context));
  if (own.length > 0 && service.hosts.length === 0) reportStatedPriority(service, context);
  return service.hosts.flatMap((host) =>
    own.flatMap(([filter, value]) =>
      hostPatches(host, context, {
        path: `/typed_per_filter_config/${filter.replaceAll("~", "~0").replaceAll("/", "~1")}`,
        value,
      }),
    ),
  );
}

function reportStatedPriority({ name, priority }: ServicePolicy, { report }: EnvoyContext): void {
  report({
    id: "HG343",
    spot: { service: name, path: ["hosts"] },
    message:
      `the virtual hosts of a gateway remove a caller's ${priority.header}, and ` +
      "the service has no hosts: while Headgate is unreachable, the header reaches " +
      "the service as sent",
    hint: "add hosts: [shop.example.com], as in the HTTPRoute",
    severity: "warning",
  });
}

function bucketPatches(service: ServicePolicy, context: EnvoyContext): readonly Tree[] {
  const value = localRateLimitPerRoute(service, context);
  if (value === undefined) return [];
  return hostsOf(service, context, "localRateLimit").flatMap((host) =>
    hostPatches(host, context, {
      path: "/typed_per_filter_config/envoy.filters.http.local_ratelimit",
      value,
    }),
  );
}

/** Enables quotas, which are disabled, for the hosts of their services. */
function quotaPatches(service: ServicePolicy, context: EnvoyContext): readonly Tree[] {
  const own = Object.entries(quotasPerRoute(service, context));
  if (own.length === 0) return [];
  return hostsOf(service, context, "quotas").flatMap((host) =>
    own.flatMap(([filter, value]) =>
      hostPatches(host, context, { path: `/typed_per_filter_config/${filter}`, value }),
    ),
  );
}

/** Patches the virtual hosts of a service whose calls are measured. */
function usagePatches(service: ServicePolicy, context: EnvoyContext): readonly Tree[] {
  const fields = Object.entries(measuredHost(service, context)).flatMap(([name, value]) =>
    value === undefined ? [] : [{ path: `/${name}`, value }],
  );
  const filter = { path: `/typed_per_filter_config/${usageFilterName}` };
  const patches = observesBodies(service)
    ? [...fields, { ...filter, value: usagePerRoute(service) }]
    : fields;
  if (patches.length === 0) return [];
  return hostsOf(service, context, "usage").flatMap((host) =>
    patches.flatMap((patch) => hostPatches(host, context, patch)),
  );
}

/** Source: envoy.config.route.v3.FilterConfig. */
function protectionPatches(service: ServicePolicy, context: EnvoyContext): readonly Tree[] {
  const value = typed("envoy.config.route.v3.FilterConfig", { config: {} });
  return protectionsOf(service).flatMap(({ name, block }) =>
    hostsOf(service, context, block).flatMap((host) =>
      hostPatches(host, context, { path: `/typed_per_filter_config/${name}`, value }),
    ),
  );
}

/** Inserts routes before those of the HTTPRoute, the last one first: each goes to the front. */
function routePatches(service: ServicePolicy, context: EnvoyContext): readonly Tree[] {
  const filters = addedFilterNames(context);
  const extProc = serviceExtProc(service, context).filter;
  const rooms = roomRoutes(service, context, {
    filters,
    // Envoy Gateway enables it only for the routes of the HTTPRoute.
    answering: { [extProc]: typed("envoy.config.route.v3.FilterConfig", { config: {} }) },
  });
  const routes = [...rooms, ...shedRoutes(service, context, filters)];
  if (routes.length === 0) return [];
  const block = rooms.length > 0 ? "waitingRooms" : "concurrency";
  return hostsOf(service, context, block).flatMap((host) =>
    routes
      .toReversed()
      .flatMap((value) => hostPatches(host, context, { path: "/routes/0", value })),
  );
}

function hostPatches(host: string, context: EnvoyContext, operation: TreeMap): readonly Tree[] {
  return xdsVirtualHosts(host, context).map(({ routes, name }) => ({
    type: "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
    name: routes,
    operation: { op: "add", jsonPath: `..virtual_hosts[?(@.name=='${name}')]`, ...operation },
  }));
}

/** Returns the hosts by which routes are found. Reports a service without hosts. */
function hostsOf(
  { name, hosts }: ServicePolicy,
  { report }: EnvoyContext,
  block: string,
): readonly string[] {
  if (hosts.length === 0) {
    report({
      id: "HG343",
      spot: { service: name, path: ["hosts"] },
      message: `${block} applies to the virtual hosts of a gateway, and the service has no hosts`,
      hint: "add hosts: [shop.example.com], as in the HTTPRoute",
      severity: "error",
    });
  }
  return hosts;
}

/**
 * Returns the filters that Envoy Gateway has no kinds for, in the order in which requests pass
 * them. Listeners may serve other hosts: each filter is off or inactive except for its services.
 */
function addedFilters(services: readonly ServicePolicy[], context: EnvoyContext): readonly Tree[] {
  reportSharedPins(services, context);
  return [
    localRateLimitFilter(services, context),
    ...quotaFilters(services, context).map(({ filter }) => filter),
    ...offAtFirst(observer(services, context)),
    ...protections.flatMap(({ filterOf }) => offAtFirst(filterOf(services, context))),
  ].filter((filter) => filter !== undefined);
}

/** It calls Headgate through Envoy Gateway's cluster for the first service's admission. */
function observer(services: readonly ServicePolicy[], context: EnvoyContext): Tree | undefined {
  const first = services.find(observesBodies);
  if (first === undefined) return undefined;
  const decisions = serviceExtProc(first, context).cluster;
  const headgateClusters = { ...context.headgateClusters, decisions };
  return usageFilter(services, { ...context, headgateClusters });
}

/** Filters with one setting for all of their services. */
const protections = [
  {
    name: "envoy.filters.http.adaptive_concurrency",
    block: "adaptiveConcurrency",
    filterOf: adaptiveConcurrencyFilter,
  },
  {
    name: "envoy.filters.http.admission_control",
    block: "admissionControl",
    filterOf: admissionControlFilter,
  },
] as const;

function offAtFirst(filter: Tree | undefined): readonly Tree[] {
  if (filter === undefined) return [];
  return [withMember(filter, "disabled", noted("Enabled by virtual hosts.", true))];
}

/** Returns the filters enabled for a service's hosts, and the policy's block for each. */
function protectionsOf(
  service: ServicePolicy,
): readonly { readonly name: string; readonly block: string }[] {
  return protections.filter(({ block }) => service[block] !== undefined);
}

/** Returns the names of the filters, for routes that disable them. */
function addedFilterNames(context: EnvoyContext): readonly string[] {
  const filters = addedFilters(context.policy.services, context);
  return filters.map((filter) => String(memberOf(filter, "name")));
}
