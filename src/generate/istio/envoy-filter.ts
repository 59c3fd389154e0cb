import { type ObjectPlace, specObject } from "../custom-object.js";
import { noted, type Tree, type TreeMap } from "../document.js";

/** In which of Istio's chains a patch acts. Source: Istio, EnvoyFilter.PatchContext. */
export type PatchContext = "SIDECAR_INBOUND" | "SIDECAR_OUTBOUND" | "GATEWAY";

const httpConnections = "envoy.filters.network.http_connection_manager";

const httpConnectionType =
  "type.googleapis.com/" +
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/** An EnvoyFilter. `labels` undefined: it holds for all workloads of its namespace. */
export function envoyFilter(
  place: ObjectPlace,
  labels: Readonly<Record<string, string>> | undefined,
  patches: readonly Tree[],
): TreeMap {
  const type = { apiVersion: "networking.istio.io/v1alpha3", kind: "EnvoyFilter" };
  return specObject(type, place, {
    workloadSelector: labels === undefined ? undefined : { labels: { ...labels } },
    configPatches: patches,
  });
}

/**
 * Puts a filter right before the router, which is after Istio's own: what authorization refuses
 * costs nobody anything. Several such patches keep their order.
 */
export function httpFilterPatch(
  context: PatchContext,
  portNumber: number | undefined,
  value: Tree,
): TreeMap {
  const subFilter = { name: "envoy.filters.http.router" };
  return {
    applyTo: "HTTP_FILTER",
    match: {
      context,
      listener: {
        portNumber,
        filterChain: { filter: { name: httpConnections, subFilter } },
      },
    },
    patch: { operation: "INSERT_BEFORE", value },
  };
}

/** Puts filters before all others, Istio's own among them, in their order. */
export function firstFilterPatches(
  context: PatchContext,
  values: readonly Tree[],
): readonly TreeMap[] {
  const listener = { filterChain: { filter: { name: httpConnections } } };
  return values.toReversed().map((value) => ({
    applyTo: "HTTP_FILTER",
    match: { context, listener },
    patch: { operation: "INSERT_FIRST", value },
  }));
}

/** Adds to the HTTP connection managers of a context. */
export function connectionPatch(context: PatchContext, settings: TreeMap): TreeMap {
  return {
    applyTo: "NETWORK_FILTER",
    match: { context, listener: { filterChain: { filter: { name: httpConnections } } } },
    patch: {
      operation: "MERGE",
      value: {
        name: httpConnections,
        typed_config: { "@type": httpConnectionType, ...settings },
      },
    },
  };
}

/** Adds to a virtual host; `name` undefined: to all of the context. */
export function virtualHostPatch(
  context: PatchContext,
  name: string | undefined,
  value: Tree,
): TreeMap {
  const vhost = name === undefined ? undefined : { vhost: { name } };
  return {
    applyTo: "VIRTUAL_HOST",
    match: { context, routeConfiguration: vhost },
    patch: { operation: "MERGE", value },
  };
}

/** Adds to each route of a virtual host that leads to a cluster. */
export function routeMergePatch(
  context: PatchContext,
  name: string | undefined,
  value: Tree,
): TreeMap {
  return {
    applyTo: "HTTP_ROUTE",
    // Merged into a redirect, it would take its place.
    match: { context, routeConfiguration: { vhost: { name, route: { action: "ROUTE" } } } },
    patch: { operation: "MERGE", value },
  };
}

/** Puts routes before all others of a virtual host, in their order. */
export function firstRoutePatches(
  context: PatchContext,
  name: string | undefined,
  routes: readonly Tree[],
): readonly Tree[] {
  const routeConfiguration = name === undefined ? undefined : { vhost: { name } };
  return routes
    .map((value) => ({
      applyTo: "HTTP_ROUTE",
      match: { context, routeConfiguration },
      patch: { operation: "INSERT_FIRST", value },
    }))
    .reverse()
    .map((patch, index) =>
      index === 0 && routes.length > 1
        ? noted("Each goes before the ones that are there, so the last route comes first.", patch)
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
