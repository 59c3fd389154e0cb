import { type ObjectPlace, specObject } from "../base/custom-object.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";

/** In which of Istio's chains a patch acts. Source: Istio, EnvoyFilter.PatchContext. */
type PatchContext = "SIDECAR_INBOUND" | "SIDECAR_OUTBOUND" | "GATEWAY";

/** Which of a context's listeners, routes and clusters a patch acts on. */
export interface PatchPlace {
  readonly context: PatchContext;
  /**
   * Of pods for what comes in, of services for what goes out. Undefined: every port, and those of
   * other services among them.
   */
  readonly port: number | undefined;
}

/**
 * Which virtual hosts a patch acts on: by what istiod calls them, or by one of their domains, which
 * may stand in any that a listener has. Undefined: all of a place.
 *
 * Source: Istio, EnvoyFilter.RouteConfigurationMatch.VirtualHostMatch.
 */
export type HostMatch = { readonly name: string } | { readonly domainName: string } | undefined;

const httpConnections = "envoy.filters.network.http_connection_manager";

const httpConnectionType =
  "type.googleapis.com/" +
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/**
 * After those of others that state none: what is put before the router stands right before it then,
 * whichever of the objects was made first.
 *
 * Source: Istio, EnvoyFilter.priority; IST0151 of `istioctl analyze`.
 */
const envoyFilterPriority = 10;

/** An EnvoyFilter. `labels` undefined: it holds for all workloads of its namespace. */
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
 * Puts a filter right before the router, which is after Istio's own: what authorization refuses
 * costs nobody anything. Several such patches keep their order.
 */
export function httpFilterPatch(place: PatchPlace, value: Tree): TreeMap {
  const subFilter = { name: "envoy.filters.http.router" };
  return {
    applyTo: "HTTP_FILTER",
    match: listenerMatch(place, { name: httpConnections, subFilter }),
    patch: { operation: "INSERT_BEFORE", value },
  };
}

/** A sidecar has one listener for all that comes in, with a filter chain for each port of a pod. */
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

/** Puts filters before all others, Istio's own among them, in their order. */
export function firstFilterPatches(place: PatchPlace, values: readonly Tree[]): readonly TreeMap[] {
  return values.toReversed().map((value) => ({
    applyTo: "HTTP_FILTER",
    match: listenerMatch(place, { name: httpConnections }),
    patch: { operation: "INSERT_FIRST", value },
  }));
}

/** Puts a filter before the one that takes TCP connections on. Several keep their order. */
export function networkFilterPatch(place: PatchPlace, value: Tree): TreeMap {
  return {
    applyTo: "NETWORK_FILTER",
    match: listenerMatch(place, { name: "envoy.filters.network.tcp_proxy" }),
    patch: { operation: "INSERT_BEFORE", value },
  };
}

/** Adds to the HTTP connection managers of a place. */
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

/** Adds to virtual hosts. */
export function virtualHostPatch(place: PatchPlace, host: HostMatch, value: Tree): TreeMap {
  return {
    applyTo: "VIRTUAL_HOST",
    match: routeMatch(place, host),
    patch: { operation: "MERGE", value },
  };
}

/** Adds to each route of virtual hosts that leads to a cluster. */
export function routeMergePatch(place: PatchPlace, host: HostMatch, value: Tree): TreeMap {
  return {
    applyTo: "HTTP_ROUTE",
    // Merged into a redirect, it would take its place.
    match: routeMatch(place, { ...host, route: { action: "ROUTE" } }),
    patch: { operation: "MERGE", value },
  };
}

/** Puts routes before all others of virtual hosts, in their order. */
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

/** Adds to the clusters that lead to a service. */
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
