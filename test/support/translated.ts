import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { kustomizationFile } from "../../src/generate/base/custom-object.js";
import { TestAuthority } from "./certificates.js";
import { caseFiles, type GeneratedCase, generatedCases } from "./generated.js";

/**
 * What Envoy Gateway's own translator makes of a golden case and the objects that a cluster has
 * beside it (`around.yaml`), as it was recorded: no test needs the translator.
 */
export interface Translation {
  /** Digest of what it was made of. */
  readonly madeOf: string;
  /** Of objects that Envoy Gateway has not taken; a patch that finds nothing is none. */
  readonly refusals: readonly string[];
  readonly listeners: readonly XdsMap[];
  readonly routes: readonly XdsMap[];
  readonly clusters: readonly XdsMap[];
  readonly endpoints: readonly XdsMap[];
}

/** A resource of Envoy as JSON; names are written in camel case. */
export type XdsMap = Readonly<Record<string, Json>>;
type Json = z.infer<ReturnType<typeof z.json>>;

const mapShape = z.record(z.string(), z.json());

/** The golden cases that are translated: those with what is around them in a cluster. */
export function translatedCases(): readonly GeneratedCase[] {
  return generatedCases().filter((given) => given.target === "gateway" && isTranslated(given));
}

/** Whether there is what is around a case in a cluster. */
export function isTranslated({ folder }: GeneratedCase): boolean {
  return existsSync(join(folder, "around.yaml"));
}

/** What the translator of a case is given. */
export function translationInput(given: GeneratedCase): string {
  const around = readFileSync(join(given.folder, "around.yaml"), "utf8");
  const objects = [...caseFiles(given)].filter(([path]) => {
    return path.endsWith(".yaml") && path !== kustomizationFile;
  });
  return [around, ...objects.map(([, text]) => text)].join("---\n");
}

/** A digest of what the translator of a case is given. */
export function translationDigest(given: GeneratedCase): string {
  return inputDigest(translationInput(given));
}

/** A digest of what a translator is given, whatever its comments. */
export function inputDigest(input: string): string {
  const said = input.replaceAll(/^ *#.*\n/gm, "");
  return createHash("sha256").update(said).digest("hex").slice(0, 16);
}

/** Runs the translator, which has to be on PATH, and keeps what it makes. */
export function recordTranslation(given: GeneratedCase): void {
  const input = join(tmpdir(), `headgate-translation-${process.pid}.yaml`);
  writeFileSync(input, certified(translationInput(given)));
  const to = "xds,gateway-api";
  const words = ["x", "translate", "--from", "gateway-api", "--to", to, "-o", "yaml"];
  const made = spawnSync("egctl", [...words, "-f", input], { encoding: "utf8" });
  if (made.status !== 0) {
    throw new Error(`egctl, Envoy Gateway's own tool, has to be on PATH: ${made.stderr}`);
  }
  const all = z.looseObject({ xds: z.json() }).parse(parse(made.stdout));
  writeRecord(given, {
    maker: "egctl x translate",
    of: translationDigest(given),
    made: { refusals: falseConditions(all, []), xds: all.xds },
  });
}

/** Keeps what a translator made: as JSON, which is read a hundred times as fast as other YAML. */
export function writeRecord(
  given: GeneratedCase,
  { maker, of, made }: { readonly maker: string; readonly of: string; readonly made: unknown },
): void {
  const text = JSON.stringify(made, undefined, 1);
  writeFileSync(recordOf(given), `# Made by ${maker} of ${of}.\n${text}\n`);
}

const conditionShape = z.object({
  status: z.literal("False"),
  type: z.string(),
  message: z.string(),
});

/** What Envoy Gateway says of objects that it has not taken: their conditions that are false. */
function falseConditions(tree: unknown, place: readonly string[]): readonly string[] {
  const found = conditionShape.safeParse(tree).data;
  if (found !== undefined) return [`${place.join(" ")}: no ${found.type}: ${found.message}`];
  if (typeof tree !== "object" || tree === null) return [];
  const named = z.object({ kind: z.string(), metadata: z.object({ name: z.string() }) });
  const own = named.safeParse(tree).data;
  const here = own === undefined ? place : [...place, own.kind, own.metadata.name];
  return Object.values(tree).flatMap((one) => falseConditions(one, here));
}

/** Fills in a certificate, which no recording holds, where objects leave its place. */
function certified(text: string): string {
  if (!text.includes("CERTIFICATE")) return text;
  const { certificate, key } = new TestAuthority().issue({ names: ["*.example.com"] });
  const base64 = (pem: string): string => Buffer.from(pem).toString("base64");
  return text.replaceAll("CERTIFICATE", base64(certificate)).replaceAll("KEY", base64(key));
}

/** What was recorded of a case. */
export function recordedTranslation(given: GeneratedCase): Translation {
  const { madeOf, made } = readRecord(given);
  const shape = z.object({ refusals: z.array(z.string()), xds: z.record(z.string(), dumpShape) });
  const { refusals, xds: gateways } = shape.parse(made);
  const configs = Object.values(gateways).flatMap((dump) => dump.configs);
  const dump: z.infer<typeof configShape> = Object.assign({}, ...configs);
  return {
    madeOf,
    refusals,
    listeners: (dump.dynamicListeners ?? []).map(({ activeState }) => activeState.listener),
    routes: (dump.dynamicRouteConfigs ?? []).map(({ routeConfig }) => routeConfig),
    clusters: (dump.dynamicActiveClusters ?? []).map(({ cluster }) => cluster),
    endpoints: (dump.dynamicEndpointConfigs ?? []).map(({ endpointConfig }) => endpointConfig),
  };
}

/** Source: envoy.admin.v3.ConfigDump. */
const configShape = z.object({
  dynamicListeners: z.array(z.object({ activeState: z.object({ listener: mapShape }) })).optional(),
  dynamicRouteConfigs: z.array(z.object({ routeConfig: mapShape })).optional(),
  dynamicActiveClusters: z.array(z.object({ cluster: mapShape })).optional(),
  dynamicEndpointConfigs: z.array(z.object({ endpointConfig: mapShape })).optional(),
});
const dumpShape = z.object({ configs: z.array(configShape) });

function recordOf({ folder }: GeneratedCase): string {
  return join(folder, "translated.yaml");
}

/** What a translator made of a case, and the digest of what it was given. */
export function readRecord(given: GeneratedCase): {
  readonly madeOf: string;
  readonly made: unknown;
} {
  const text = readFileSync(recordOf(given), "utf8");
  const [head, madeOf = ""] = /^# Made by .* of (\w+)\.\n/.exec(text) ?? [""];
  const rest = text.slice(head.length);
  return { madeOf, made: rest.startsWith("{") ? JSON.parse(rest) : parse(rest) };
}

/** Where a translated proxy stands on this machine. */
export interface TranslatedPlace {
  readonly adminPort: number;
  /** The port of this machine for each port that a listener has. */
  readonly listenerPorts: Readonly<Record<number, number>>;
  /** The port of this machine for each address that an endpoint has, or address and port. */
  readonly endpointPorts: Readonly<Record<string, number>>;
  /** Where Headgate stands in the place of Envoy Gateway's rate-limit service; absent: nowhere. */
  readonly rateLimitPort?: number | undefined;
}

/** A bootstrap with all that would be sent to the proxy, on loopback. */
export function translatedBootstrap(of: Translation, place: TranslatedPlace): unknown {
  const routeOf = new Map(of.routes.map((route) => [route["name"], plain(route)]));
  const endpointOf = new Map(of.endpoints.map((one) => [one["clusterName"], one]));
  return {
    node: { id: "proxy-1", cluster: "proxies" },
    admin: { address: socket(place.adminPort) },
    layered_runtime: { layers: [{ name: "admin", admin_layer: {} }] },
    static_resources: {
      listeners: of.listeners.flatMap((listener) => {
        const port = place.listenerPorts[portOf(listener)];
        // Health and statistics of the proxy itself.
        if (port === undefined) return [];
        return [
          {
            ...mapTree(plain(listener), (map) => simplified(inlined(map, routeOf))),
            address: socket(port),
          },
        ];
      }),
      clusters: [...of.clusters, ...rateLimitClusters(place)].map((cluster) => {
        // Secrets come by ADS, which is not here.
        const { edsClusterConfig, transportSocketMatches: _tls, ...rest } = plain(cluster);
        if (edsClusterConfig === undefined) return rest;
        const { serviceName } = z.object({ serviceName: z.string() }).parse(edsClusterConfig);
        const assignment = plain(endpointOf.get(serviceName) ?? { clusterName: serviceName });
        const local = mapTree(assignment, (map) => moved(map, place));
        return { ...rest, type: "STATIC", loadAssignment: local };
      }),
    },
  };
}

/** The same, where nothing is sent: all of its listeners, with hosts that are nowhere. */
export function wholeTranslatedBootstrap(given: GeneratedCase): unknown {
  const anywhere = 1;
  const around = readFileSync(join(given.folder, "around.yaml"), "utf8");
  const addresses = around.match(/\b192\.0\.2\.\d+\b/g) ?? [];
  return translatedBootstrap(recordedTranslation(given), {
    adminPort: 0,
    // As the objects around the cases have them; Envoy Gateway makes 10080 of port 80.
    listenerPorts: { 8080: 0, 8443: 0, 10080: 0 },
    endpointPorts: Object.fromEntries(addresses.map((one) => [one, anywhere])),
    rateLimitPort: anywhere,
  });
}

/** The translator makes none, for want of the certificate that Envoys show there. */
function rateLimitClusters({ rateLimitPort }: TranslatedPlace): readonly XdsMap[] {
  if (rateLimitPort === undefined) return [];
  const name = "ratelimit_cluster";
  const endpoint = { address: socket(rateLimitPort) };
  const options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
  return [
    {
      name,
      type: "STATIC",
      loadAssignment: { clusterName: name, endpoints: [{ lbEndpoints: [{ endpoint }] }] },
      typedExtensionProtocolOptions: {
        [options]: {
          "@type": `type.googleapis.com/${options}`,
          explicitHttpConfig: { http2ProtocolOptions: {} },
        },
      },
    },
  ];
}

function socket(port: number) {
  return { socketAddress: { address: "127.0.0.1", portValue: port } };
}

const addressShape = z.object({
  socketAddress: z.object({ address: z.string(), portValue: z.int() }),
});

function portOf(listener: XdsMap): number {
  return addressShape.parse(listener["address"]).socketAddress.portValue;
}

/** Without the type that a dump writes to a whole resource. */
function plain({ "@type": _type, ...rest }: XdsMap): XdsMap {
  return rest;
}

/** Routes that are sent apart go into their listener. */
function inlined(map: XdsMap, routeOf: ReadonlyMap<unknown, XdsMap>): XdsMap {
  const { rds, ...rest } = map;
  const name = z.object({ routeConfigName: z.string() }).safeParse(rds).data?.routeConfigName;
  const route = name === undefined ? undefined : routeOf.get(name);
  return route === undefined ? map : { ...rest, routeConfig: route };
}

/**
 * Callers come without TLS here; a program's output is no file that Envoy could open, where it is
 * read through a pipe; and the time for a limit's answer, which the translator leaves at Envoy's
 * own, is enough for a machine that is busy.
 */
function simplified({ transportSocket: _socket, ...map }: XdsMap): XdsMap {
  if (map["rateLimitService"] !== undefined) return { ...map, timeout: "10s" };
  return map["path"] === "/dev/stdout" ? { ...map, path: "/dev/null" } : map;
}

function moved(map: XdsMap, { endpointPorts }: TranslatedPlace): XdsMap {
  const found = addressShape.safeParse(map).data?.socketAddress;
  if (found === undefined) return map;
  const { address, portValue } = found;
  const port = endpointPorts[`${address}:${portValue}`] ?? endpointPorts[address];
  if (port === undefined) throw new Error(`${found.address} is nowhere on this machine`);
  return socket(port);
}

/** The same tree, with each of its maps replaced from the root down. */
export function mapTree(map: XdsMap, change: (map: XdsMap) => XdsMap): XdsMap {
  const walk = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== "object" || value === null) return value;
    return mapTree(value, change);
  };
  return Object.fromEntries(Object.entries(change(map)).map(([key, one]) => [key, walk(one)]));
}
