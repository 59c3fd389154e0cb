import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { type GeneratedCase, generatedCases } from "./generated.js";
import {
  inputDigest,
  isTranslated,
  mapTree,
  readRecord,
  translationInput,
  writeRecord,
  type XdsMap,
} from "./translated.js";

/**
 * What istiod makes of a golden case, of the objects that a mesh has beside it (`around.yaml`) and
 * for these proxies (`proxies.json`), as it was recorded: no test needs istiod. Names of fields are
 * Envoy's own (snake_case).
 */
export interface MeshTranslation {
  /** Digest of what it was made of. */
  readonly madeOf: string;
  readonly proxies: Readonly<Record<string, TranslatedProxy>>;
}

/** What one proxy of a mesh is sent. */
export type TranslatedProxy = z.infer<typeof proxyShape>;

const resourcesShape = z.array(z.record(z.string(), z.json()));
const proxyShape = z.object({
  listeners: resourcesShape,
  routes: resourcesShape,
  clusters: resourcesShape,
  endpoints: resourcesShape,
});
const proxiesShape = z.record(z.string(), proxyShape);

/** The golden cases that are translated. */
export function meshCases(): readonly GeneratedCase[] {
  return generatedCases().filter((given) => given.target === "istio" && isTranslated(given));
}

/** A digest of what the translator of a case is given. */
export function meshDigest(given: GeneratedCase): string {
  return inputDigest(translationInput(given) + readFileSync(proxiesOf(given), "utf8"));
}

/** Runs istiod's translator, which has to be on PATH, and keeps what it makes. */
export function recordMesh(given: GeneratedCase): void {
  const folder = mkdtempSync(join(tmpdir(), "headgate-translation-"));
  const [input, output] = [join(folder, "all.yaml"), join(folder, "out.json")];
  writeFileSync(input, translationInput(given));
  const env = { HG_CONFIG: input, HG_PROXIES: proxiesOf(given), HG_OUT: output };
  const made = spawnSync("istio-translate", ["-test.run", "TestDump"], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  if (!existsSync(output)) {
    throw new Error(`istio-translate has to be on PATH: ${made.error} ${made.stderr}`);
  }
  const sent = z.record(z.string(), z.record(z.string(), resourcesShape.nullable()));
  const dump = sent.parse(JSON.parse(readFileSync(output, "utf8")));
  rmSync(folder, { recursive: true });
  const proxies = Object.entries(dump).map(([name, kinds]) => {
    const sorted = Object.entries(kinds).map(([kind, resources]) => {
      return [kind, (resources ?? []).map((one) => mapTree(one, untraced)).sort(byName)];
    });
    return [name, Object.fromEntries(sorted)];
  });
  const of = meshDigest(given);
  writeRecord(given, { maker: "istio-translate", of, made: Object.fromEntries(proxies) });
}

/** What was recorded of a case. */
export function recordedMesh(given: GeneratedCase): MeshTranslation {
  const { madeOf, made } = readRecord(given);
  return { madeOf, proxies: proxiesShape.parse(made) };
}

function proxiesOf({ folder }: GeneratedCase): string {
  return join(folder, "proxies.json");
}

/** Tags of traces are a third of all that istiod writes. */
function untraced({ tracing: _tracing, ...map }: XdsMap): XdsMap {
  return map;
}

/** istiod has them in another order each time. */
function byName(one: XdsMap, other: XdsMap): number {
  const nameOf = (map: XdsMap): string => String(map["name"] ?? map["cluster_name"]);
  return nameOf(one) < nameOf(other) ? -1 : 1;
}

/** Where a translated proxy stands on this machine. */
export interface MeshPlace {
  readonly adminPort: number;
  /** The listeners that are asked; `podPort`: of a sidecar's inbound one, the container's port. */
  readonly listeners: readonly {
    readonly name: string;
    readonly podPort?: number;
    readonly port: number;
  }[];
  /** The port of this machine for each address and port that an endpoint has. */
  readonly endpointPorts: Readonly<Record<string, number>>;
}

/** A bootstrap with all that would be sent to the proxy, on loopback. */
export function meshBootstrapOf(proxy: TranslatedProxy, place: MeshPlace): unknown {
  const routeOf = new Map(proxy.routes.map((route) => [route["name"], route]));
  const endpointOf = new Map(proxy.endpoints.map((one) => [one["cluster_name"], one]));
  return {
    node: { id: "proxy-1", cluster: "proxies" },
    admin: { address: loopback(place.adminPort) },
    layered_runtime: { layers: [{ name: "admin", admin_layer: {} }] },
    static_resources: {
      listeners: place.listeners.map((wish) => {
        const listener = proxy.listeners.find(({ name }) => name === wish.name);
        if (listener === undefined) throw new Error(`there is no listener ${wish.name}`);
        return mapTree(here(listener, wish), (map) => plainEnvoy(inlined(map, routeOf)));
      }),
      clusters: proxy.clusters.map((cluster) => {
        return mapTree(fixed(cluster, { endpointOf, place }), plainEnvoy);
      }),
    },
  };
}

/** All that an Envoy loads of a proxy, where nothing is sent: all of its listeners. */
export function wholeMeshBootstrap(proxy: TranslatedProxy): unknown {
  const text = JSON.stringify([proxy.endpoints, proxy.clusters]);
  const addresses = [...text.matchAll(/"address":"([^"]+)","port_value":(\d+)/g)];
  const endpointPorts = addresses.map(([, address, port]) => [`${address}:${port}`, 1]);
  const names = proxy.listeners.map(({ name }) => String(name));
  const outbound = names.filter((name) => /^0\.0\.0\.0_/.test(name)).map((name) => ({ name }));
  const pods = proxy.clusters.flatMap(({ name }) => {
    const [, port] = /^inbound\|(\d+)\|\|$/.exec(String(name)) ?? [];
    return port === undefined ? [] : [{ name: "virtualInbound", podPort: Number(port) }];
  });
  const listeners = [...outbound, ...pods].map((one, index) => ({ ...one, port: 1 + index }));
  return meshBootstrapOf(proxy, {
    adminPort: 0,
    listeners,
    endpointPorts: Object.fromEntries(endpointPorts),
  });
}

function loopback(port: number) {
  return { socket_address: { address: "127.0.0.1", port_value: port } };
}

const chainShape = z.looseObject({
  filter_chain_match: z.looseObject({ destination_port: z.int().optional() }).optional(),
  transport_socket: z.json().optional(),
});

/**
 * A listener of its own, as if connections were not redirected to it, whose callers come without
 * TLS.
 */
function here(listener: XdsMap, { podPort, port }: MeshPlace["listeners"][number]): XdsMap {
  const { bind_to_port: _bind, use_original_dst: _use, ...rest } = listener;
  const all = z.array(chainShape).parse(listener["filter_chains"]);
  const chains = all.flatMap(({ transport_socket: socket, ...chain }) => {
    const {
      destination_port: ofPort,
      transport_protocol: _,
      ...match
    } = chain.filter_chain_match ?? {};
    if (ofPort !== podPort || (podPort !== undefined && socket !== undefined)) return [];
    return [{ ...chain, filter_chain_match: match }];
  });
  if (chains.length === 0) throw new Error(`no chain for port ${podPort}`);
  const filters = z
    .array(z.looseObject({ name: z.string() }))
    .parse(rest["listener_filters"] ?? []);
  return z.record(z.string(), z.json()).parse({
    ...rest,
    name: `${rest["name"]}-${podPort}`,
    address: loopback(port),
    listener_filters: filters.filter(({ name }) => name.endsWith(".http_inspector")),
    filter_chains: chains,
  });
}

/** Routes that are sent apart go into their listener. */
function inlined(map: XdsMap, routeOf: ReadonlyMap<unknown, XdsMap>): XdsMap {
  const { rds, ...rest } = map;
  const name = z.object({ route_config_name: z.string() }).safeParse(rds).data?.route_config_name;
  if (name === undefined) return map;
  const route = routeOf.get(name);
  if (route === undefined) throw new Error(`there are no routes ${name}`);
  return { ...rest, route_config: route };
}

/** Filters that Istio's own build of Envoy has and no other; none of them refuses a request. */
const istioFilters: readonly string[] = ["istio.metadata_exchange", "istio.alpn", "istio.stats"];

/** What an Envoy without Istio's extensions can load; its output goes nowhere. */
function plainEnvoy(map: XdsMap): XdsMap {
  const lists = Object.entries(map).map(([key, value]) => {
    if (!/^(http_)?filters$/.test(key) || !Array.isArray(value)) return [key, value];
    return [key, value.filter((one) => !istioFilters.includes(String(Object(one)["name"])))];
  });
  const rest: XdsMap = Object.fromEntries(lists);
  return rest["path"] === "/dev/stdout" ? { ...rest, path: "/dev/null" } : rest;
}

const addressShape = z.object({
  socket_address: z.object({ address: z.string(), port_value: z.int() }),
});

/** A cluster whose hosts are all on this machine; callers' own certificates are not here. */
function fixed(
  cluster: XdsMap,
  { endpointOf, place }: { endpointOf: ReadonlyMap<unknown, XdsMap>; place: MeshPlace },
): XdsMap {
  const {
    eds_cluster_config: _eds,
    transport_socket: _socket,
    transport_socket_matches: _matches,
    lb_policy: policy,
    cleanup_interval: _interval,
    ...rest
  } = cluster;
  const name = String(cluster["name"]);
  const isOriginal = cluster["type"] === "ORIGINAL_DST";
  // A sidecar sends what comes in to where it was going.
  const [, podPort] = /^inbound\|(\d+)\|\|$/.exec(name) ?? [];
  const own = place.endpointPorts[`pod:${podPort}`];
  const sent = rest["load_assignment"] ?? endpointOf.get(name);
  const endpoints = own === undefined ? [] : [{ lb_endpoints: [{ endpoint: address(own) }] }];
  const assignment = isOriginal ? { endpoints } : mapTree(asMap(sent ?? {}), moved);
  return {
    ...rest,
    type: "STATIC",
    load_assignment: { ...assignment, cluster_name: name },
    ...(isOriginal || policy === undefined ? {} : { lb_policy: policy }),
  };

  function moved(map: XdsMap): XdsMap {
    const found = addressShape.safeParse(map).data?.socket_address;
    if (found === undefined) return map;
    const port = place.endpointPorts[`${found.address}:${found.port_value}`];
    if (port !== undefined) return loopback(port);
    throw new Error(`${found.address}:${found.port_value} is nowhere on this machine`);
  }
}

function address(port: number) {
  return { address: loopback(port) };
}

function asMap(value: unknown): XdsMap {
  return z.record(z.string(), z.json()).parse(value);
}
