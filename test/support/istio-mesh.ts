import { z } from "zod";

/**
 * A little of what Istio does: it applies the patches of an EnvoyFilter to listeners, routes and
 * clusters as Istio makes them, as the real one's code has it, so that a real Envoy can be asked
 * whether it takes what comes out. Names and fields are Envoy's own (snake_case).
 *
 * Source: istio/istio, pilot/pkg/networking/core/envoyfilter.
 */
export type MeshContext = "SIDECAR_INBOUND" | "SIDECAR_OUTBOUND" | "GATEWAY";

const patchShape = z.object({
  applyTo: z.enum(["NETWORK_FILTER", "HTTP_FILTER", "VIRTUAL_HOST", "HTTP_ROUTE", "CLUSTER"]),
  match: z.strictObject({
    context: z.enum(["SIDECAR_INBOUND", "SIDECAR_OUTBOUND", "GATEWAY"]),
    listener: z
      .strictObject({
        portNumber: z.int().optional(),
        filterChain: z.strictObject({
          destinationPort: z.int().optional(),
          filter: z.strictObject({
            name: z.string(),
            subFilter: z.strictObject({ name: z.string() }).optional(),
          }),
        }),
      })
      .optional(),
    routeConfiguration: z
      .strictObject({
        portNumber: z.int().optional(),
        vhost: z
          .strictObject({
            name: z.string().optional(),
            domainName: z.string().optional(),
            route: z.strictObject({ action: z.literal("ROUTE") }).optional(),
          })
          .optional(),
      })
      .optional(),
    cluster: z.strictObject({ service: z.string(), portNumber: z.int().optional() }).optional(),
  }),
  patch: z.strictObject({
    operation: z.enum(["MERGE", "INSERT_BEFORE", "INSERT_FIRST"]),
    value: z.record(z.string(), z.json()),
  }),
});

type ConfigPatch = z.infer<typeof patchShape>;

const filterShape = z.object({ spec: z.object({ configPatches: z.array(patchShape) }) });

const anyMap = z.record(z.string(), z.json());
type AnyMap = z.infer<typeof anyMap>;

/** A proxy of a mesh before anybody patched it. */
export interface MeshProxy {
  readonly context: MeshContext;
  readonly listenerPort: number;
  /** Of what comes in: the port of the pod. */
  readonly podPort?: number;
  /** Virtual hosts, and the cluster of each. */
  readonly hosts: readonly { readonly name: string; readonly cluster: string }[];
  /** Clusters by the service that they lead to. */
  readonly clusters: readonly { readonly name: string; readonly service: string }[];
}

/** What of a proxy patches act on, and how often each patch of an EnvoyFilter did. */
export interface PatchedProxy {
  readonly listener: AnyMap;
  readonly clusters: readonly AnyMap[];
  readonly unused: readonly string[];
}

/** Applies an EnvoyFilter, or several, to a proxy, in Istio's order. */
export function applyEnvoyFilter(objects: unknown, proxy: MeshProxy): PatchedProxy {
  const filters = [objects].flat().map((object) => filterShape.parse(object));
  // Its proxies have no TCP listeners; what Istio itself makes of those is recorded.
  const configPatches = filters
    .flatMap(({ spec }) => spec.configPatches)
    .filter(({ match }) => match.listener?.filterChain.filter.name !== tcpProxyName);
  const mine = configPatches.filter(({ match }) => {
    const { destinationPort } = match.listener?.filterChain ?? {};
    const port = destinationPort ?? match.routeConfiguration?.portNumber ?? proxy.podPort;
    return match.context === proxy.context && port === proxy.podPort;
  });
  const used = new Set<ConfigPatch>();
  const hosts = proxy.hosts.map((host) => patchHost(virtualHost(host), mine, used));
  const manager = connectionManager(proxy, hosts);
  for (const one of mine) {
    if (one.applyTo !== "NETWORK_FILTER") continue;
    merge(manager, anyMap.parse(one.patch.value["typed_config"]));
    used.add(one);
  }
  insertFilters(manager, { mine, used, port: proxy.listenerPort });
  const clusters = proxy.clusters.map(({ name, service }) => {
    return patchCluster(cluster(name), { mine, used, service });
  });
  return {
    listener: listener(proxy, manager),
    clusters,
    unused: configPatches.filter((one) => !used.has(one)).map((one) => JSON.stringify(one)),
  };
}

function patchHost(host: AnyMap, mine: readonly ConfigPatch[], used: Set<ConfigPatch>): AnyMap {
  const matching = mine.filter(({ match }) => {
    const { name, domainName } = match.routeConfiguration?.vhost ?? {};
    const own = String(host["name"]);
    const isMatched = domainName === undefined || own.startsWith(`${domainName}:`);
    return isMatched && (name === undefined || name === own);
  });
  for (const one of matching.filter(({ applyTo }) => applyTo === "VIRTUAL_HOST")) {
    merge(host, one.patch.value);
    used.add(one);
  }
  const ofRoutes = matching.filter(({ applyTo }) => applyTo === "HTTP_ROUTE");
  const routes = z.array(anyMap).parse(host["routes"]);
  for (const one of ofRoutes.filter(({ patch }) => patch.operation === "MERGE")) {
    for (const route of routes) merge(route, one.patch.value);
    used.add(one);
  }
  for (const one of ofRoutes.filter(({ patch }) => patch.operation === "INSERT_FIRST")) {
    routes.unshift(structuredClone(one.patch.value));
    used.add(one);
  }
  return { ...host, routes };
}

function insertFilters(
  manager: AnyMap,
  given: { mine: readonly ConfigPatch[]; used: Set<ConfigPatch>; port: number },
): void {
  const filters = z.array(anyMap).parse(manager["http_filters"]);
  for (const one of given.mine) {
    const port = one.match.listener?.portNumber;
    if (one.applyTo !== "HTTP_FILTER" || (port !== undefined && port !== given.port)) continue;
    const before = one.match.listener?.filterChain.filter.subFilter?.name;
    const isFirst = one.patch.operation === "INSERT_FIRST";
    const at = isFirst ? 0 : filters.findIndex(({ name }) => name === before);
    if (at === -1) continue;
    filters.splice(at, 0, structuredClone(one.patch.value));
    given.used.add(one);
  }
  manager["http_filters"] = filters;
}

function patchCluster(
  to: AnyMap,
  given: { mine: readonly ConfigPatch[]; used: Set<ConfigPatch>; service: string },
): AnyMap {
  for (const one of given.mine) {
    const { cluster: match } = one.match;
    if (one.applyTo !== "CLUSTER" || match?.service !== given.service) continue;
    const { portNumber } = match;
    if (portNumber !== undefined && !String(to["name"]).includes(`|${portNumber}|`)) continue;
    merge(to, one.patch.value);
    given.used.add(one);
  }
  return to;
}

/**
 * As protobuf merges: messages member by member, lists one after the other. What stands under
 * `typed_per_filter_config` is a map of packed messages, which are replaced.
 */
export function merge(to: AnyMap, from: AnyMap, isMapOfAny = false): void {
  for (const [name, value] of Object.entries(from)) {
    const before = to[name];
    if (Array.isArray(before) && Array.isArray(value)) to[name] = [...before, ...value];
    else if (isMap(before) && isMap(value) && !isMapOfAny) {
      merge(before, value, name === "typed_per_filter_config");
    } else to[name] = structuredClone(value);
  }
}

function isMap(value: unknown): value is AnyMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const tcpProxyName = "envoy.filters.network.tcp_proxy";
const managerName = "envoy.filters.network.http_connection_manager";
const type = (name: string): string => `type.googleapis.com/envoy.${name}`;

function connectionManager({ context }: MeshProxy, hosts: readonly AnyMap[]): AnyMap {
  return {
    "@type": type("extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix:
      context === "SIDECAR_OUTBOUND" ? "outbound_0.0.0.0_8080;" : "inbound_0.0.0.0_8080;",
    http2_protocol_options: { initial_stream_window_size: 65_536 },
    route_config: { name: "8080", validate_clusters: true, virtual_hosts: [...hosts] },
    http_filters: [
      {
        name: "envoy.filters.http.fault",
        typed_config: { "@type": type("extensions.filters.http.fault.v3.HTTPFault") },
      },
      {
        name: "envoy.filters.http.router",
        typed_config: { "@type": type("extensions.filters.http.router.v3.Router") },
      },
    ],
  };
}

function virtualHost({ name, cluster: to }: MeshProxy["hosts"][number]): AnyMap {
  const route = { cluster: to, timeout: "0s", retry_policy: { retry_on: "connect-failure" } };
  return {
    name,
    domains: [name],
    routes: [{ name: "default", match: { prefix: "/" }, route }],
  };
}

/** As a DestinationRule's connection pool makes it. */
function cluster(name: string): AnyMap {
  return {
    name,
    type: "STATIC",
    connect_timeout: "0.25s",
    circuit_breakers: { thresholds: [{ max_requests: 1_024, track_remaining: true }] },
    load_assignment: { cluster_name: name, endpoints: [] },
  };
}

function listener({ context, listenerPort }: MeshProxy, manager: AnyMap): AnyMap {
  return {
    name: context === "SIDECAR_INBOUND" ? "virtualInbound" : `0.0.0.0_${listenerPort}`,
    address: { socket_address: { address: "127.0.0.1", port_value: listenerPort } },
    filter_chains: [{ filters: [{ name: managerName, typed_config: manager }] }],
  };
}

/** A bootstrap such as Istio's agent writes, with what Istio's control plane would send in it. */
export function meshBootstrap({ listener: inner, clusters }: PatchedProxy): AnyMap {
  return {
    node: { id: "sidecar~127.0.0.1~orders.shop~shop.svc.cluster.local", cluster: "orders.shop" },
    layered_runtime: {
      layers: [
        { name: "global config", static_layer: { "re2.max_program_size.error_level": 32_768 } },
        { name: "admin", admin_layer: {} },
      ],
    },
    stats_config: {
      use_all_default_tags: false,
      stats_matcher: { inclusion_list: { patterns: [{ prefix: "reporter=" }] } },
    },
    admin: { address: { socket_address: { address: "127.0.0.1", port_value: 0 } } },
    static_resources: { listeners: [inner], clusters: [...clusters] },
  };
}
