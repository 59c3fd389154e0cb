import { type ObjectPlace, specObject } from "../base/custom-object.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";

/** Which of Istio's proxies a patch applies to. Source: Istio, EnvoyFilter.PatchContext. */
type PatchContext = "SIDECAR_INBOUND" | "SIDECAR_OUTBOUND" | "GATEWAY";

/** Which listeners, routes and clusters of a context a patch applies to. */
export interface PatchPlace {
  readonly context: PatchContext;
  /**
   * Port of pods for inbound, of services for outbound. Undefined: every port, including those of
   * other services.
   */
  readonly port: number | undefined;
}

/**
 * Which virtual hosts a patch applies to: by istiod's name, or by one of their domains, which may
 * be on any listener. Undefined: all virtual hosts of a place.
 *
 * Source: Istio, EnvoyFilter.RouteConfigurationMatch.VirtualHostMatch.
 */
export type HostMatch = { readonly name: string } | { readonly domainName: string } | undefined;

const httpConnections = "envoy.filters.network.http_connection_manager";

const httpConnectionType =
  "type.googleapis.com/" +
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/**
 * After EnvoyFilters that set no priority, so that filters that are inserted before the router stay
 * right before it, whichever object was created first.
 *
 * Source: Istio, EnvoyFilter.priority; IST0151 of `istioctl analyze`.
 */
const envoyFilterPriority = 10;

/** Returns an EnvoyFilter. `labels` undefined: it applies to all workloads of its namespace. */
export function envoyFilter(
  place: ObjectPlace,
  labels: Readonly<Record<string, string>> | undefined,
  patches: readonly Tree[],
): TreeMap {
  const type = { apiVersion: "networking.istio.io/v1alpha3", kind: "EnvoyFilter" };
  return specObject(type, place, {
    priority: envoyFilterPriority,
    workloadSelector: labels === undefined ? undefined : { labels: { ...labels } },
    configPatches: patches,
  });
}

/**
 * Inserts a filter right before the router, so after Istio's own filters: requests that
 * authorization refuses cost nothing. Several such patches keep their order.
 */
export function httpFilterPatch(place: PatchPlace, value: Tree): TreeMap {
  const subFilter = { name: "envoy.filters.http.router" };
  return {
    applyTo: "HTTP_FILTER",
    match: listenerMatch(place, { name: httpConnections, subFilter }),
    patch: { operation: "INSERT_BEFORE", value },
  };
}

/** A sidecar has one inbound listener, with a filter chain for each port of a pod. */
function listenerMatch({ context, port }: PatchPlace, filter: TreeMap): TreeMap {
  const isInbound = context === "SIDECAR_INBOUND";
  return {
    context,
    listener: {
      portNumber: isInbound ? undefined : port,
      filterChain: { destinationPort: isInbound ? port : undefined, filter },
    },
  };
}

function routeMatch({ context, port }: PatchPlace, vhost: TreeMap | undefined): TreeMap {
  const portNumber = context === "SIDECAR_INBOUND" ? port : undefined;
  const isAny = portNumber === undefined && vhost === undefined;
  return { context, routeConfiguration: isAny ? undefined : { portNumber, vhost } };
}

/** Inserts filters before all others, including Istio's own, and keeps their order. */
export function firstFilterPatches(place: PatchPlace, values: readonly Tree[]): readonly TreeMap[] {
  return values.toReversed().map((value) => ({
    applyTo: "HTTP_FILTER",
    match: listenerMatch(place, { name: httpConnections }),
    patch: { operation: "INSERT_FIRST", value },
  }));
}

/** Inserts a filter before the TCP proxy filter. Several patches keep their order. */
export function networkFilterPatch(place: PatchPlace, value: Tree): TreeMap {
  return {
    applyTo: "NETWORK_FILTER",
    match: listenerMatch(place, { name: "envoy.filters.network.tcp_proxy" }),
    patch: { operation: "INSERT_BEFORE", value },
  };
}

/** Merges settings into the HTTP connection managers of a place. */
export function connectionPatch(place: PatchPlace, settings: TreeMap): TreeMap {
  return {
    applyTo: "NETWORK_FILTER",
    match: listenerMatch(place, { name: httpConnections }),
    patch: {
      operation: "MERGE",
      value: {
        name: httpConnections,
        typed_config: { "@type": httpConnectionType, ...settings },
      },
    },
  };
}

/** Merges settings into virtual hosts. */
export function virtualHostPatch(place: PatchPlace, host: HostMatch, value: Tree): TreeMap {
  return {
    applyTo: "VIRTUAL_HOST",
    match: routeMatch(place, host),
    patch: { operation: "MERGE", value },
  };
}

/** Merges settings into each route of virtual hosts that leads to a cluster. */
export function routeMergePatch(place: PatchPlace, host: HostMatch, value: Tree): TreeMap {
  return {
    applyTo: "HTTP_ROUTE",
    // Merged into a redirect, the settings would replace it.
    match: routeMatch(place, { ...host, route: { action: "ROUTE" } }),
    patch: { operation: "MERGE", value },
  };
}

/** Inserts routes before all others of virtual hosts, and keeps their order. */
export function firstRoutePatches(
  place: PatchPlace,
  host: HostMatch,
  routes: readonly Tree[],
): readonly Tree[] {
  return routes
    .map((value) => ({
      applyTo: "HTTP_ROUTE",
      match: routeMatch(place, host),
      patch: { operation: "INSERT_FIRST", value },
    }))
    .reverse()
    .map((patch, index) =>
      index === 0 && routes.length > 1
        ? noted(
            "Each route is inserted before the existing ones, so the last one comes first.",
            patch,
          )
        : patch,
    );
}

/** Merges settings into the clusters of a service. */
export function clusterPatch(
  context: PatchContext,
  cluster: TreeMap | undefined,
  value: Tree,
): TreeMap {
  return {
    applyTo: "CLUSTER",
    match: { context, cluster },
    patch: { operation: "MERGE", value },
  };
}
