import { isPlainMap, type PlainMap, type PlainValue } from "../generate/base/plain-tree.js";
import { isOfType, mapAt, mapsAt, parsePlain, textAt } from "./json-access.js";

/** Maximum length of a dump, in UTF-16 units. */
export const dumpCharsMax = 134_217_728;

/** An HTTP filter of a listener. */
export interface HttpFilter {
  readonly name: string;
  readonly isDisabled: boolean;
  /** Its configuration; undefined if it is discovered and not available yet. */
  readonly config: PlainMap | undefined;
}

/** A chain of HTTP filters, and the routes behind it. */
export interface HttpChain {
  readonly listener: string;
  readonly filters: readonly HttpFilter[];
  /** Undefined if they are discovered and not available yet. */
  readonly routes: PlainMap | undefined;
}

/** Configuration of an Envoy, as far as it is dumped. Every value is as untrusted as the text. */
export interface EnvoyDump {
  readonly bootstrap: PlainMap | undefined;
  readonly chains: readonly HttpChain[];
  readonly clusters: ReadonlyMap<string, PlainMap>;
  /** Hosts by cluster, if the dump includes them. */
  readonly endpoints: ReadonlyMap<string, PlainMap>;
}

/** A dump, both arranged and as received, or why it is invalid. */
type ReadDump =
  | { readonly kind: "dump"; readonly dump: EnvoyDump; readonly tree: PlainValue }
  | { readonly kind: "unreadable"; readonly why: string };

/**
 * Reads the response of Envoy's admin port to `/config_dump?include_eds`. Ignores unknown fields of
 * newer Envoys.
 *
 * Source: envoy.admin.v3.ConfigDump.
 */
export function readConfigDump(text: string): ReadDump {
  if (text.length > dumpCharsMax) {
    return { kind: "unreadable", why: `it is longer than ${dumpCharsMax} characters` };
  }
  const read = parsePlain(text);
  if (read.kind === "unreadable") return read;
  const parts = mapsAt(read.value, "configs");
  const known = parts.filter((part) => textAt(part, "@type")?.includes("envoy.admin.") === true);
  if (known.length === 0) {
    return { kind: "unreadable", why: "it is not a response of /config_dump: configs is missing" };
  }
  return { kind: "dump", dump: arrange(parts), tree: read.value };
}

/**
 * Reads a bootstrap as an Envoy that starts with it would dump it; undefined if it is invalid.
 * Configuration from a control plane is missing.
 */
export function readBootstrap(bootstrap: PlainMap): EnvoyDump | undefined {
  if (mapAt(bootstrap, "static_resources") === undefined) return undefined;
  const part = (name: string, fields: PlainMap): PlainMap => ({
    "@type": `type.googleapis.com/envoy.admin.v3.${name}`,
    ...fields,
  });
  const clusters = mapsAt(bootstrap, "static_resources", "clusters");
  const listeners = mapsAt(bootstrap, "static_resources", "listeners");
  return arrange([
    part("BootstrapConfigDump", { bootstrap }),
    part("ClustersConfigDump", { static_clusters: clusters.map((cluster) => ({ cluster })) }),
    part("ListenersConfigDump", { static_listeners: listeners.map((listener) => ({ listener })) }),
  ]);
}

function arrange(parts: readonly PlainMap[]): EnvoyDump {
  const of = (name: string): readonly PlainMap[] =>
    parts.filter((part) => isOfType(part, `envoy.admin.v3.${name}`));
  const bootstrap = of("BootstrapConfigDump").map((part) => mapAt(part, "bootstrap"));
  const discovered = byName(
    of("EcdsConfigDump").flatMap((part) => inner(part, ["ecds_filters"], ["ecds_filter"])),
    "name",
  );
  const routes = byName(
    of("RoutesConfigDump").flatMap((part) =>
      inner(part, ["static_route_configs", "dynamic_route_configs"], ["route_config"]),
    ),
    "name",
  );
  const listeners = of("ListenersConfigDump").flatMap((part) => [
    ...inner(part, ["static_listeners"], ["listener"]),
    ...inner(part, ["dynamic_listeners"], ["active_state", "listener"]),
  ]);
  const clusters = of("ClustersConfigDump").flatMap((part) =>
    inner(part, ["static_clusters", "dynamic_active_clusters"], ["cluster"]),
  );
  const endpoints = of("EndpointsConfigDump").flatMap((part) =>
    inner(part, ["static_endpoint_configs", "dynamic_endpoint_configs"], ["endpoint_config"]),
  );
  return {
    bootstrap: bootstrap.find((one) => one !== undefined),
    chains: listeners.flatMap((listener) => chainsOf(listener, { routes, discovered })),
    clusters: byName(clusters, "name"),
    endpoints: byName(endpoints, "cluster_name"),
  };
}

/** Returns the maps below the items of lists. */
function inner(
  part: PlainMap,
  lists: readonly string[],
  names: readonly string[],
): readonly PlainMap[] {
  const items = lists.flatMap((list) => mapsAt(part, list));
  return items.map((item) => mapAt(item, ...names)).filter((found) => found !== undefined);
}

function byName(maps: readonly PlainMap[], field: string): ReadonlyMap<string, PlainMap> {
  return new Map(maps.flatMap((map) => namedPair(map, field)));
}

function namedPair(map: PlainMap, field: string): readonly (readonly [string, PlainMap])[] {
  const name = textAt(map, field);
  return name === undefined ? [] : [[name, map]];
}

interface Found {
  readonly routes: ReadonlyMap<string, PlainMap>;
  readonly discovered: ReadonlyMap<string, PlainMap>;
}

const managerType =
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

function chainsOf(listener: PlainMap, found: Found): readonly HttpChain[] {
  const defaultChain = mapAt(listener, "default_filter_chain");
  const chains = [
    ...mapsAt(listener, "filter_chains"),
    ...(defaultChain === undefined ? [] : [defaultChain]),
  ];
  return chains
    .flatMap((chain) => mapsAt(chain, "filters"))
    .map((filter) => mapAt(filter, "typed_config"))
    .filter((config) => config !== undefined)
    .filter((config) => isOfType(config, managerType))
    .map((manager) => {
      const routeName = textAt(manager, "rds", "route_config_name") ?? "";
      return {
        listener: textAt(listener, "name") ?? "",
        filters: mapsAt(manager, "http_filters").map((one) => filterOf(one, found)),
        routes: mapAt(manager, "route_config") ?? found.routes.get(routeName),
      };
    });
}

function filterOf(filter: PlainMap, { discovered }: Found): HttpFilter {
  const name = textAt(filter, "name") ?? "";
  const isDiscovered = isPlainMap(filter["config_discovery"]);
  const holder: PlainValue | undefined = isDiscovered ? discovered.get(name) : filter;
  return {
    name,
    isDisabled: filter["disabled"] === true,
    config: mapAt(holder, "typed_config"),
  };
}
