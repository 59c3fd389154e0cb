import { z } from "zod";

/**
 * A little of what Envoy Gateway does: it applies the JSON patches of an EnvoyPatchPolicy to the
 * resources that it sends to Envoy, so that a real Envoy can be asked whether it takes what comes
 * out. Of JSON paths only `..name[?(@.name=='x')]` and what lies below are known.
 *
 * Source: envoyproxy/gateway, internal/utils/jsonpatch.
 */
export interface XdsResources {
  readonly listener: JsonMap;
  readonly routes: JsonMap;
  readonly clusters: readonly JsonMap[];
}

/** A map of JSON. */
export type JsonMap = z.infer<typeof mapShape>;
type Json = z.infer<ReturnType<typeof z.json>>;

const mapShape = z.record(z.string(), z.json());

const policyShape = z.object({
  spec: z.object({
    jsonPatches: z.array(
      z.strictObject({
        type: z.string(),
        name: z.string(),
        operation: z.strictObject({
          op: z.enum(["add", "replace"]),
          jsonPath: z.string().optional(),
          path: z.string().optional(),
          value: z.json(),
        }),
      }),
    ),
  }),
});

/** Applies EnvoyPatchPolicies; throws where a patch finds nothing to act on. */
export function applyPatchPolicies(
  objects: readonly unknown[],
  resources: XdsResources,
): XdsResources {
  const patched = structuredClone(resources);
  const patches = objects.flatMap((object) => policyShape.parse(object).spec.jsonPatches);
  for (const { type, name, operation } of patches) {
    const resource = resourceOf(type, name, patched);
    const { jsonPath, path = "", op, value } = operation;
    const bases = jsonPath === undefined ? [[]] : find(resource, jsonPath);
    if (bases.length === 0) throw new Error(`${jsonPath} finds nothing in ${name}`);
    for (const base of bases) {
      const below = path
        .split("/")
        .slice(1)
        .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
      put(resource, [...base, ...below], { op, value: structuredClone(value) });
    }
  }
  return patched;
}

function resourceOf(type: string, name: string, of: XdsResources): JsonMap {
  const kind = type.slice(type.lastIndexOf(".") + 1);
  const all = { Listener: [of.listener], RouteConfiguration: [of.routes], Cluster: of.clusters };
  const known = Object.entries(all).find(([one]) => one === kind)?.[1] ?? [];
  const found = known.find((one) => one["name"] === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
}

type Place = readonly (string | number)[];

/** The places of `..list[?(@.name=='x')].below`. */
function find(root: Json, jsonPath: string): readonly Place[] {
  const match = /^\.\.(\w+)\[\?\(@\.name=='([^']+)'\)\](?:\.(\w+))?$/.exec(jsonPath);
  if (match === null) throw new Error(`${jsonPath} is not understood`);
  const [, list = "", name = "", below] = match;
  const places: Place[] = [];
  const look = (value: Json, at: Place): void => {
    if (Array.isArray(value)) for (const [i, item] of value.entries()) look(item, [...at, i]);
    else if (isMap(value)) {
      for (const [key, item] of Object.entries(value)) {
        if (key === list && Array.isArray(item)) {
          for (const [i, one] of item.entries()) {
            const place = [...at, key, i, ...(below === undefined ? [] : [below])];
            if (isMap(one) && one["name"] === name) places.push(place);
          }
        }
        look(item, [...at, key]);
      }
    }
  };
  look(root, []);
  return places;
}

/** Adds or replaces at a place; an addition makes the maps that lead there. */
function put(
  root: Json,
  place: Place,
  { op, value }: { readonly op: "add" | "replace"; readonly value: Json },
): void {
  const last = place.at(-1);
  if (last === undefined) throw new Error("a whole resource is not patched");
  let at: Json = root;
  for (const part of place.slice(0, -1)) {
    if (isMap(at) && at[part] === undefined && op === "add") at[part] = {};
    const next: Json | undefined = Array.isArray(at)
      ? at[Number(part)]
      : isMap(at)
        ? at[part]
        : undefined;
    if (next === undefined) throw new Error(`there is no ${place.join("/")}`);
    at = next;
  }
  if (Array.isArray(at)) {
    const index = last === "-" ? at.length : Number(last);
    at.splice(index, op === "add" ? 0 : 1, value);
  } else if (isMap(at)) at[last] = value;
}

function isMap(value: unknown): value is JsonMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A Gateway's listener as Envoy Gateway makes it, and what hangs below. */
export interface GatewayWish {
  /** `<namespace>/<gateway>/http`. */
  readonly listener: string;
  readonly port: number;
  readonly hosts: readonly { readonly host: string; readonly cluster: string }[];
  /** Filters and clusters of EnvoyExtensionPolicies, by the cluster's name. */
  readonly extProcs: readonly string[];
}

const type = (name: string): string => `type.googleapis.com/envoy.extensions.filters.${name}`;
const managerName = "envoy.filters.network.http_connection_manager";

/** The resources before anybody patched them. */
export function gatewayResources(wish: GatewayWish): XdsResources {
  const { listener, hosts, extProcs } = wish;
  const clusters = new Set([...hosts.map(({ cluster }) => cluster), ...extProcs]);
  return {
    listener: {
      name: listener,
      address: { socket_address: { address: "127.0.0.1", port_value: wish.port } },
      default_filter_chain: {
        name: listener,
        filters: [{ name: managerName, typed_config: manager(extProcs) }],
      },
    },
    routes: {
      name: listener,
      validate_clusters: true,
      virtual_hosts: hosts.map(({ host, cluster }) => ({
        name: `${listener}/${host.replaceAll(".", "_")}`,
        domains: [host],
        routes: [{ name: `${cluster}/match/0`, match: { prefix: "/" }, route: { cluster } }],
      })),
    },
    clusters: [...clusters].map((name) => ({
      name,
      type: "STATIC",
      circuit_breakers: { thresholds: [{ max_retries: 1_024 }] },
      load_assignment: { cluster_name: name, endpoints: [] },
    })),
  };
}

function manager(extProcs: readonly string[]): JsonMap {
  const router = type("http.router.v3.Router");
  return {
    "@type": type("network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "http-10080",
    http_filters: [
      ...extProcs.map((cluster) => ({
        name: `envoy.filters.http.ext_proc/${cluster}`,
        disabled: true,
        typed_config: {
          "@type": type("http.ext_proc.v3.ExternalProcessor"),
          grpc_service: { envoy_grpc: { cluster_name: cluster } },
        },
      })),
      { name: "envoy.filters.http.router", typed_config: { "@type": router } },
    ],
  };
}

/** A bootstrap such as Envoy Gateway's, with the resources that it would send. */
export function gatewayBootstrap({ listener, routes, clusters }: XdsResources): JsonMap {
  const whole = structuredClone(listener);
  const chain = ["default_filter_chain", "filters", 0, "typed_config", "route_config"];
  put(whole, chain, { op: "add", value: routes });
  return {
    node: { id: "envoy-shop", cluster: "shop" },
    admin: { address: { socket_address: { address: "127.0.0.1", port_value: 0 } } },
    layered_runtime: {
      layers: [
        { name: "global_config", static_layer: { "re2.max_program_size.warn_level": 1_000 } },
      ],
    },
    overload_manager: {
      refresh_interval: "0.25s",
      resource_monitors: [
        {
          name: "envoy.resource_monitors.global_downstream_max_connections",
          typed_config: {
            "@type":
              "type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3." +
              "DownstreamConnectionsConfig",
            max_active_downstream_connections: 50_000,
          },
        },
      ],
    },
    static_resources: { listeners: [whole], clusters: [...clusters] },
  };
}
