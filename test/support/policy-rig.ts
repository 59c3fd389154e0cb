import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { inboundPort } from "../../src/generate/istio/mesh-name.js";
import type { ServicePolicy } from "../../src/policy/services/service-policy.js";
import { Envoy } from "./envoy.js";
import { freePort } from "./free-port.js";
import { startLimiter } from "./gateway-limiter.js";
import { caseFiles, casePolicy, casePolicyText, type PolicyCase } from "./generated.js";
import { HostedHeadgate } from "./hosted-headgate.js";
import { type PolicyUpstream, startPolicyUpstream } from "./policy-upstream.js";
import { startScriptedUpstream } from "./scripted-upstream.js";
import type { Stage } from "./stage.js";
import { mapTree, recordedTranslation, translatedBootstrap, type XdsMap } from "./translated.js";
import { meshBootstrapOf, recordedMesh } from "./translated-istio.js";

/** One of the five policies at one place: real Envoys, a real Headgate, and the services. */
export interface PolicyRig {
  /** Where requests for a service go: to each proxy of a fleet. */
  readonly portsOf: (service: string) => readonly number[];
  readonly upstreams: readonly PolicyUpstream[];
}

/** All that a place has to know of the others. */
interface ProgramEnvironment {
  readonly stage: Stage;
  readonly given: PolicyCase;
  readonly services: readonly ServicePolicy[];
  readonly upstreams: readonly PolicyUpstream[];
  readonly headgate: HostedHeadgate;
  /** The port of this machine for each address of the objects around a policy. */
  readonly ports: Readonly<Record<string, number>>;
}

/** Starts all of it; it ends with the stage. */
export async function startPolicy(stage: Stage, given: PolicyCase): Promise<PolicyRig> {
  const { services, quotas } = casePolicy(given);
  const upstreams = await Promise.all(services.map(({ name }) => startPolicyUpstream(stage, name)));
  const headgate = await HostedHeadgate.start(stage, { policy: casePolicyText(given) });
  const ports = Object.fromEntries([
    ...["192.0.2.9", "192.0.2.19", "headgate.headgate.svc.cluster.local"].flatMap((address) => [
      [`${address}:8081`, headgate.grpcPort] as const,
      [`${address}:18000`, headgate.portOf("control")] as const,
    ]),
    ["192.0.2.8:8000", await startAuthorizer(stage)] as const,
    // In the order of the policy: a Service, its pod, and its name.
    ...services.flatMap((service, index) => {
      const { address = "", port = 0 } = service.upstream ?? {};
      const to = upstreams[index]?.port ?? 0;
      return [
        [`192.0.2.${1 + index}:${port}`, to] as const,
        [`192.0.2.${11 + index}:${port}`, to] as const,
        [`${address}:${port}`, to] as const,
        [`pod:${inboundPort(service)}`, to] as const,
      ];
    }),
  ]);
  const around = { stage, given, services, upstreams, headgate, ports };
  if (given.place === "istio-sidecar") {
    const ports = new Map(await Promise.all(services.map((one) => startSidecar(around, one))));
    return { portsOf: (service) => [ports.get(service) ?? 0], upstreams };
  }
  // A quota is divided among proxies.
  const proxyCount = quotas.length > 0 ? 2 : 1;
  const start = edgeStarts[given.place];
  const edges = await Promise.all(Array.from({ length: proxyCount }, () => start(around)));
  return { portsOf: () => edges, upstreams };
}

/** What starts an edge before all services; each answers its port. */
const edgeStarts = {
  envoy: startPlain,
  "istio-gateway": startMeshGateway,
  gateway: startGateway,
} as const;

/** Says yes to the keys of callers who are known, as a user's own service of authorization. */
async function startAuthorizer(stage: Stage): Promise<number> {
  const server = await startScriptedUpstream(stage);
  server.answer = (_, { headers }) => {
    const isKnown = /^key-of-(ann|bob|cy)$/.test(String(headers["x-api-key"]));
    return { status: isKnown ? 200 : 401 };
  };
  return server.port;
}

const addedShape = z.object({
  filters: z.array(z.json()),
  clusters: z.array(z.json()).default([]),
});

/** What is generated runs as it is, but for where things are and who asks callers who they are. */
async function startPlain({ stage, given, ports }: ProgramEnvironment): Promise<number> {
  const { listener } = casePolicy(given).proxies;
  const own = {
    [listener.port]: await freePort(),
    [listener.statisticsPort]: await freePort(),
    [listener.adminPort]: await freePort(),
  };
  const file = join(given.folder, "around.yaml");
  const added = addedShape.parse(
    existsSync(file) ? parse(readFileSync(file, "utf8")) : { filters: [] },
  );
  const generated = generatedEdge(given);
  const whole = mapTree(withClusters(generated, added.clusters), (map) => {
    return moved(withFilters(map, added.filters), ports, own);
  });
  const port = own[listener.port] ?? 0;
  await startEnvoy(stage, { bootstrap: whole, port, adminPort: own[listener.adminPort] ?? 0 });
  return port;
}

/** A whole proxy, or a user's own with the pieces that are generated for it. */
function generatedEdge(given: PolicyCase): XdsMap {
  const { listener } = casePolicy(given).proxies;
  const files = caseFiles(given);
  const whole = files.get("edge/envoy.yaml");
  if (whole !== undefined) return asMap(parse(whole));
  const piece = (name: string) => parse(files.get(`fragments/edge/${name}.yaml`) ?? "");
  const address = (port: number) => ({ socket_address: { address: "0.0.0.0", port_value: port } });
  const manager = {
    "@type":
      "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3." +
      "HttpConnectionManager",
    stat_prefix: "edge",
    route_config: { virtual_hosts: piece("virtual_hosts") },
    http_filters: piece("http_filters"),
    local_reply_config: piece("local_reply_config"),
  };
  const name = "envoy.filters.network.http_connection_manager";
  const chain = { filters: [{ name, typed_config: manager }] };
  return asMap({
    admin: { address: address(listener.adminPort) },
    layered_runtime: piece("layered_runtime"),
    static_resources: {
      listeners: [{ address: address(listener.port), filter_chains: [chain] }],
      clusters: piece("clusters"),
    },
  });
}

function withClusters(bootstrap: XdsMap, clusters: readonly Json[]): XdsMap {
  return mergedMaps(bootstrap, { static_resources: { clusters: [...clusters] } });
}

/** Who authenticates comes before all but those that remove what strangers say of classes. */
function withFilters(map: XdsMap, added: readonly Json[]): XdsMap {
  const { http_filters: filters } = map;
  if (!Array.isArray(filters)) return map;
  const name = (one: Json) => String(Object(one)["name"]);
  const at = filters.findIndex((one) => !/header_mutation\.priority/.test(name(one)));
  return { ...map, http_filters: [...filters.slice(0, at), ...added, ...filters.slice(at)] };
}

async function startSidecar(
  around: ProgramEnvironment,
  service: ServicePolicy,
): Promise<readonly [string, number]> {
  const wish = {
    sent: recordedMesh(around.given).proxies[service.name],
    listener: { name: "virtualInbound", podPort: inboundPort(service) ?? 0 },
    bootstrap: "bootstrap.yaml",
    cluster: `${service.name}.${service.namespace}`,
  };
  return [service.name, await startMeshProxy(around, wish)];
}

async function startMeshGateway(around: ProgramEnvironment): Promise<number> {
  const { gateway: sent } = recordedMesh(around.given).proxies;
  const listener = { name: "0.0.0.0_80" };
  const wish = { sent, listener, bootstrap: "gateway-bootstrap.yaml", cluster: "gateway" };
  return startMeshProxy(around, wish);
}

async function startMeshProxy(
  { stage, given, ports }: ProgramEnvironment,
  wish: {
    readonly sent: ReturnType<typeof recordedMesh>["proxies"][string] | undefined;
    readonly listener: { readonly name: string; readonly podPort?: number };
    readonly bootstrap: string;
    readonly cluster: string;
  },
): Promise<number> {
  const { sent, listener, cluster } = wish;
  if (sent === undefined) throw new Error(`${given.name} has no proxy ${cluster}`);
  const [port, adminPort] = [await freePort(), await freePort()];
  const place = { adminPort, listeners: [{ ...listener, port }], endpointPorts: ports };
  const own = asMap(meshBootstrapOf(sent, place));
  const node = { node: { id: `${cluster}-1`, cluster } };
  const joined = mergedMaps(mergedMaps(own, overrideOf(given, wish.bootstrap)), node);
  const bootstrap = mapTree(joined, (map) => moved(map, ports));
  await startEnvoy(stage, { bootstrap, port, adminPort });
  return port;
}

/** What Istio's agent is given to be merged into what an Envoy reads as it starts. */
function overrideOf(given: PolicyCase, file: string): XdsMap {
  const text = caseFiles(given).get(file);
  if (text === undefined) return {};
  const map = z.object({ data: z.record(z.string(), z.string()) }).parse(parse(text));
  return asMap(parse(map.data["custom_bootstrap.json"] ?? "{}"));
}

async function startGateway(around: ProgramEnvironment): Promise<number> {
  const { stage, given, ports } = around;
  const translation = recordedTranslation(given);
  const limiter = await startLimiter(stage, given, translation);
  const [port, adminPort] = [await freePort(), await freePort()];
  const own = translatedBootstrap(translation, {
    adminPort,
    listenerPorts: { 8080: port },
    endpointPorts: ports,
    rateLimitPort: limiter?.grpcPort,
  });
  // Layers have names of their own: those of an EnvoyProxy stand in place of the tests' one.
  const { layered_runtime: _, ...rest } = asMap(own);
  const merged = mergedMaps(rest, proxyBootstrapOf(given));
  const bootstrap = mapTree(merged, (map) => moved(map, ports));
  await startEnvoy(stage, { bootstrap, port, adminPort });
  return port;
}

const proxyShape = z.object({
  kind: z.literal("EnvoyProxy"),
  spec: z.object({ bootstrap: z.object({ value: z.string() }) }),
});

/** What an EnvoyProxy says is merged, as in the real one, into what an Envoy reads as it starts. */
function proxyBootstrapOf(given: PolicyCase): XdsMap {
  const objects = parseAllDocuments(caseFiles(given).get("gateway.yaml") ?? "");
  const proxies = objects.flatMap((one) => proxyShape.safeParse(one.toJS()).data ?? []);
  return asMap(parse(proxies[0]?.spec.bootstrap.value ?? "{}"));
}

async function startEnvoy(
  stage: Stage,
  place: { readonly bootstrap: XdsMap; readonly port: number; readonly adminPort: number },
): Promise<void> {
  const path = join(stage.folder, `policy-${place.port}.json`);
  const bootstrap = mapTree(place.bootstrap, (map) => named(patient(map), place.port));
  await writeFile(path, JSON.stringify(bootstrap));
  await Envoy.startFile(stage, { ...place, path });
}

type Json = z.infer<ReturnType<typeof z.json>>;

function asMap(value: unknown): XdsMap {
  return z.record(z.string(), z.json()).parse(JSON.parse(JSON.stringify(value)));
}

/** As protobuf merges: lists are added to, what is in both is the other's. */
function mergedMaps(one: XdsMap, other: XdsMap): XdsMap {
  const merged = Object.entries(other).map(([name, value]) => {
    const own = one[name];
    if (Array.isArray(own) && Array.isArray(value)) return [name, [...own, ...value]];
    return [name, isMap(own) && isMap(value) ? mergedMaps(own, value) : value];
  });
  return { ...one, ...Object.fromEntries(merged) };
}

function isMap(value: Json | undefined): value is Record<string, Json> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const addressShape = z.object({
  socket_address: z.object({ address: z.string(), port_value: z.int() }),
});

/** An address on this machine for one that is elsewhere. */
function moved(
  map: XdsMap,
  ports: Readonly<Record<string, number>>,
  own: Readonly<Record<number, number>> = {},
): XdsMap {
  const found = addressShape.safeParse(map).data?.socket_address;
  if (found === undefined) return map;
  const port = ports[`${found.address}:${found.port_value}`] ?? own[found.port_value];
  return port === undefined ? map : { socket_address: { address: "127.0.0.1", port_value: port } };
}

/** Times that are enough for a machine that is busy; and output that goes nowhere. */
function patient(map: XdsMap): XdsMap {
  const times = ["message_timeout", "messageTimeout"].filter((name) => name in map);
  const longer = Object.fromEntries(times.map((name) => [name, "10s"]));
  const isLimiter = "rate_limit_service" in map || "rateLimitService" in map;
  const output = map["path"] === "/dev/stdout" ? { path: "/dev/null" } : {};
  return { ...map, ...longer, ...output, ...(isLimiter ? { timeout: "10s" } : {}) };
}

/** Proxies of one address have to be told apart by a header, for Headgate to know each. */
function named(map: XdsMap, port: number): XdsMap {
  const server = map["rlqs_server"] ?? map["rlqsServer"];
  if (!isMap(server)) return map;
  const metadata = [{ key: "x-headgate-node", value: `edge-${port}` }];
  const { rlqsServer: _, ...rest } = map;
  return { ...rest, rlqs_server: { ...server, initial_metadata: metadata } };
}
