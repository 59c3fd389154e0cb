import type { ServicePolicy } from "../../policy/services/service-policy.js";
import {
  filledDocuments,
  metadata,
  type ObjectPlace,
  objectName,
  objectsDocument,
} from "../base/custom-object.js";
import type { Document, Tree, TreeMap } from "../base/document.js";
import type {
  GeneratedPolicy,
  GenerateOptions,
  GenerateProblem,
  Generator,
} from "../base/generator.js";
import { renderYaml } from "../base/render.js";
import {
  broughtEnvoy,
  type EnvoyBundler,
  reportOnce,
} from "../envoy/base/bundled-envoy-version.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { reportOptions } from "../envoy/base/option-support.js";
import { isHeldHere, isOutside } from "../envoy/base/sides.js";
import { reportTcpOptions } from "../envoy/base/tcp-option-support.js";
import { mergedBootstrap } from "../envoy/bootstrap/merged-bootstrap.js";
import { connectionFilters } from "../envoy/bootstrap/tcp-listener.js";
import { headerBounds } from "../envoy/http/listener.js";
import { type MetadataPlace, reportMetadata } from "../envoy/http/metadata-needs.js";
import { type MergedTimes, mergeTimes, type ServiceTimes } from "../merge/merge-times.js";
import { mergedDocument } from "../merge/merged-document.js";
import { clusterPatches } from "./cluster-patches.js";
import { sidecarObject } from "./connection-pool.js";
import { destinationRule } from "./destination-rule.js";
import { envoyFilter, networkFilterPatch } from "./envoy-filter.js";
import { connectionPatches, filterPatches } from "./filter-patches.js";
import { headgateObjects } from "./headgate-objects.js";
import { type MeshName, meshName } from "./mesh-name.js";
import { reportOwnClusters } from "./own-clusters.js";
import {
  callersPlace,
  gatewayPlace,
  type IstioPlace,
  istioRootNamespace,
  matchesByDomain,
  ownPlace,
  serviceNamespace,
} from "./place.js";
import { routePatches } from "./route-patches.js";
import { reportGatewayTimes, routeTimes, virtualService } from "./virtual-service.js";

/** Istio 1.22 has Envoy 1.30, 1.23 has 1.31, and so on. Source: Istio, "Supported releases". */
const bundler: EnvoyBundler = { flag: "--istio-version", minorsAhead: 8 };

/**
 * Generates Istio's objects: for each service a DestinationRule, a VirtualService and settings of
 * its own sidecar; one EnvoyFilter each for all callers and for the gateway; the settings that
 * sidecars and gateways read at startup; and the route to Headgate.
 */
export const generateIstio: Generator = (policy, options) => {
  const problems: GenerateProblem[] = [];
  const envoy = meshContext(policy, options, problems);
  const times = mergeTimes(options.existing, serviceTimes(policy, envoy));
  const place: ServicesPlace = { envoy, times, problems };
  const documents: Document[] = [
    headgateDocument(place),
    ...policy.services.flatMap((service) => serviceDocuments(service, place)),
    objectsDocument("virtual-services.yaml", timesTitle, times.objects),
  ];
  problems.push(...times.problems);
  reportOptions("istio", envoy);
  reportTcpOptions("istio", envoy);
  for (const service of policy.services) reportMetadata(service, metadataPlace(envoy));
  if (options.roles.includes("sidecar")) {
    documents.push(...sidecarDocuments(policy, place));
    reportOwnClusters(policy, envoy);
  }
  if (options.roles.includes("edge")) documents.push(...gatewayDocuments(policy, place));
  return { documents: filledDocuments(documents, problems), problems };
};

function meshContext(
  policy: GeneratedPolicy,
  options: GenerateOptions,
  problems: GenerateProblem[],
): EnvoyContext {
  const { address, port, controlPort } = policy.proxies.headgate;
  return {
    policy,
    options: { ...options, envoyVersion: broughtEnvoy(bundler, options.istioVersion) },
    role: "sidecar",
    side: "inbound",
    headgateClusters: {
      decisions: `outbound|${port}||${address}`,
      control: "headgate_control",
      quotas: `outbound|${controlPort}||${address}`,
    },
    report: reportOnce(bundler, problems),
  };
}

/** In a mesh, users have their own filters, and RequestAuthentications. */
function metadataPlace({ report }: EnvoyContext): MetadataPlace {
  return {
    isClosed: false,
    who: "nothing, unless you add a filter that does",
    hint: "a RequestAuthentication (jwt_authn), or an EnvoyFilter of priority 0 (json_to_metadata)",
    report,
  };
}

/** Context in which objects of services are made, with objects of the user. */
interface ServicesPlace {
  readonly envoy: EnvoyContext;
  readonly times: MergedTimes;
  readonly problems: GenerateProblem[];
}

function serviceTimes(
  { services }: GeneratedPolicy,
  { options }: EnvoyContext,
): readonly ServiceTimes[] {
  return services.flatMap((service) => {
    const mesh = meshName(service);
    if (mesh === undefined) return [];
    return {
      service: service.name,
      meshHost: mesh.host,
      gatewayHosts: options.roles.includes("edge") ? service.hosts : [],
      times: routeTimes(service, options.envoyVersion),
    };
  });
}

const timesTitle =
  "Your VirtualServices, with the policy's timeouts and retries in their HTTP " +
  "routes to its services. Routes with their own settings keep them.";

function headgateDocument(place: ServicesPlace): Document {
  const { envoy, problems } = place;
  const document = objectsDocument("headgate.yaml", headgateTitle, headgateObjects(envoy));
  const { existing } = envoy.options;
  return mergedDocument(document, { existing, problems, service: undefined });
}

const headgateTitle =
  "How the mesh reaches Headgate for decisions.\nEither the namespace of Headgate " +
  "has sidecars, or the mesh accepts plaintext from it.";

/** Returns breakers, outlier detection, timeouts and retries, for all callers. */
function serviceDocuments(service: ServicePolicy, place: ServicesPlace): readonly Document[] {
  const { envoy, times, problems } = place;
  const mesh = meshName(service);
  if (mesh === undefined) {
    envoy.report({
      id: "HG340",
      spot: { service: service.name, path: ["upstream"] },
      message: "Istio identifies services by full host names, and the policy has none for this one",
      hint: "upstream: {address: orders.shop.svc.cluster.local, port: 8080}, with its real names",
    });
    return [];
  }
  const isRouted = times.hosts.has(mesh.host);
  const parts = [
    destinationRule(service, mesh, { ...envoy, place: placeOf(service, envoy) }),
    ...(isRouted ? [] : [virtualServiceOf(service, mesh, envoy)]),
  ];
  const title = `Settings for callers of ${service.name}.`;
  const document = objectsDocument(`services/${objectName(service.name)}.yaml`, title, parts);
  const hint = (merged: ReadonlySet<string>): string => {
    const isRuled = merged.has("DestinationRule");
    if (isRuled && isRouted) return "";
    const one = isRuled
      ? "one VirtualService"
      : isRouted
        ? "one DestinationRule"
        : "one of each kind";
    return ` A host can have only ${one}. If you already have one, merge these settings into it.`;
  };
  const { existing } = envoy.options;
  return [mergedDocument(document, { existing, problems, service: service.name, hint })];
}

function virtualServiceOf(service: ServicePolicy, mesh: MeshName, envoy: EnvoyContext): Tree {
  const { envoyVersion } = envoy.options;
  return virtualService(service, mesh, { place: placeOf(service, envoy), envoyVersion });
}

function placeOf(service: ServicePolicy, envoy: EnvoyContext): ObjectPlace {
  return { name: objectName(service.name), namespace: serviceNamespace(service, envoy) };
}

function sidecarDocuments(policy: GeneratedPolicy, place: ServicesPlace): readonly Document[] {
  const { envoy, problems } = place;
  const inside = policy.services.filter((service) => !isOutside(service));
  const own = inside.map((service) => {
    const title = `The sidecar of ${service.name}, selected by the labels of its pods.`;
    const hint = (merged: ReadonlySet<string>) => (merged.has("Sidecar") ? "" : oneSidecarTitle);
    const path = `sidecars/${objectName(service.name)}.yaml`;
    const own = ownPlace(service, envoy);
    const objects = [sidecarObject(service, own.envoy, own.object), ...filterObjects(own)];
    const document = objectsDocument(path, title, objects);
    const { existing } = envoy.options;
    return mergedDocument(document, { existing, problems, service: service.name, hint });
  });
  const namespaces = new Set(policy.services.map((service) => serviceNamespace(service, envoy)));
  const context: EnvoyContext = { ...envoy, role: "sidecar" };
  const bootstraps = [...namespaces].map((name) => bootstrapConfigMap(context, name));
  return [
    ...own,
    objectsDocument("callers.yaml", callersTitle, filterObjects(callersPlace(policy, envoy))),
    objectsDocument("bootstrap.yaml", bootstrapTitle, bootstraps),
  ];
}

const oneSidecarTitle =
  " Pods can have only one Sidecar. If you already have one, merge these settings into it.";

const callersTitle =
  "Settings for the sidecars of callers. In Istio's root namespace they apply to " +
  "the whole mesh. In another namespace, or with a workloadSelector, they apply to " +
  "fewer sidecars.";

const bootstrapTitle = `The bootstrap of a sidecar's Envoy. Pods with the annotation
sidecar.istio.io/bootstrapOverride: headgate-bootstrap
use it after they are recreated.`;

function gatewayDocuments(
  policy: GeneratedPolicy,
  { envoy, times }: ServicesPlace,
): readonly Document[] {
  const context: EnvoyContext = { ...envoy, role: "edge" };
  reportGatewayTimes(policy.services, context, times.hosts);
  return [
    objectsDocument(
      "gateway.yaml",
      gatewayTitle(envoy, times),
      filterObjects(gatewayPlace(policy, envoy)),
    ),
    objectsDocument("gateway-bootstrap.yaml", gatewayBootstrapTitle, [
      bootstrapConfigMap(context, istioRootNamespace),
    ]),
  ];
}

function gatewayTitle({ options, policy }: EnvoyContext, { hosts }: MergedTimes): string {
  const all = policy.services.flatMap((service) => service.hosts);
  const isReported = all.length > 0 && all.every((host) => hosts.has(host));
  const where = matchesByDomain(options)
    ? ". "
    : ", on ports 80 and 443, if each host is the first in its VirtualService: " +
      "patches before Istio 1.27 do not find others. ";
  return (
    `Settings of Istio's gateway for the hosts of the policy${where}Set the labels ` +
    "of another gateway in proxies.gateway.labels. Timeouts and retries of its " +
    "routes belong in their VirtualServices: " +
    `${isReported ? "virtual-services.yaml" : "services/"} has the policy's.`
  );
}

const gatewayBootstrapTitle =
  "The bootstrap of the gateway's Envoy. Mount it into the gateway's container " +
  "istio-proxy at /etc/istio/custom-bootstrap, and set " +
  "there\nISTIO_BOOTSTRAP_OVERRIDE=/etc/istio/custom-bootstrap/custom_bootstrap.json";

/**
 * Returns the EnvoyFilters of a place. If it has several services, each gets its own object,
 * because a cluster accepts objects of at most 1.5 MiB, and `kubectl apply` less.
 */
function filterObjects(place: IstioPlace): readonly Tree[] {
  const shared = filterPatches(place);
  const own = place.services.flatMap((service) => {
    const patches = [...routePatches(service, place), ...clusterPatches(service, place)];
    return patches.length === 0 ? [] : [{ service, patches }];
  });
  if (shared.length > 0 || own.length > 0) reportPort(place);
  else if (!holdsBreaker(place) && !boundsListeners(place)) return [];
  const common = [...connectionPatches(place), ...shared, ...tcpPatches(place)];
  const { object, labels } = place;
  if (place.context === "SIDECAR_INBOUND") {
    return [envoyFilter(object, labels, [...common, ...own.flatMap(({ patches }) => patches)])];
  }
  return [
    envoyFilter(object, labels, common),
    ...own.map(({ service, patches }) => {
      const name = objectName(`${object.name}-${service.name}`);
      return envoyFilter({ ...object, name }, labels, patches);
    }),
  ];
}

/** Refusals by the breaker of its Sidecar also say when to retry. */
function holdsBreaker({ context, services, envoy }: IstioPlace): boolean {
  return context === "SIDECAR_INBOUND" && services.some((service) => isHeldHere(service, envoy));
}

/** The policy's limits of listeners apply regardless of other settings of a place. */
function boundsListeners({ context, envoy }: IstioPlace): boolean {
  const { listener, tcpListeners } = envoy.policy.proxies;
  if (context === "SIDECAR_OUTBOUND") return false;
  if (context === "GATEWAY" && tcpListeners.length > 0) return true;
  const isBounded = Object.values(headerBounds(listener)).some((bound) => bound !== undefined);
  return isBounded || (context === "GATEWAY" && listener.escapedSlashes !== undefined);
}

/** Pods may serve several ports, and only a cluster's name tells which one is the service's. */
function reportPort({ context, port, services, envoy }: IstioPlace): void {
  const [service] = services;
  if (context !== "SIDECAR_INBOUND" || port !== undefined || service === undefined) return;
  envoy.report({
    id: "HG368",
    spot: { service: service.name, path: ["clusters"] },
    message: "the container port is not named, so the settings of the sidecar apply to every port",
    hint: 'add clusters: ["inbound|8080||"], with that port',
  });
}

/** Name of the ConfigMap, which pods set in `sidecar.istio.io/bootstrapOverride`. */
const bootstrapConfigMapName = "headgate-bootstrap";

/** Listeners of each kind of proxy that accept callers' connections. */
const listenersOf = {
  sidecar: ["virtualInbound"],
  edge: ["0.0.0.0_8080", "0.0.0.0_8443"],
} as const;

/**
 * Returns settings that Envoy reads once at startup, in the ConfigMap that Istio's agent passes to
 * it as `--config-yaml`. Envoy merges them into the bootstrap.
 *
 * Source: Istio, `sidecar.istio.io/bootstrapOverride`; pilot-agent, `ISTIO_BOOTSTRAP_OVERRIDE`.
 */
function bootstrapConfigMap(context: EnvoyContext, namespace: string): TreeMap {
  const { connectionsMax } = context.policy.proxies.listener;
  const limits = listenersOf[context.role].map((name) => {
    return [`envoy.resource_limits.listener.${name}.connection_limit`, connectionsMax];
  });
  const bootstrap = mergedBootstrap(context, {
    clusterNote:
      "Istio's certificates do not apply here. Headgate's control port must accept " +
      "plaintext from inside the cluster, or set certificates in " +
      "proxies.headgate.tls.",
    runtimeKeys: Object.fromEntries(limits),
    hasAdminLayer: true,
  });
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: metadata({ name: bootstrapConfigMapName, namespace }),
    data: { "custom_bootstrap.json": renderYaml(bootstrap) },
  };
}

/**
 * Returns the connection limits of the TCP servers of the mesh's gateway, found by their ports. The
 * user's TCP routes define where the connections lead.
 */
function tcpPatches({ context, envoy }: IstioPlace): readonly Tree[] {
  if (context !== "GATEWAY") return [];
  return envoy.policy.proxies.tcpListeners.flatMap((listener) =>
    connectionFilters(listener, envoy).map((filter) =>
      networkFilterPatch({ context, port: listener.port }, filter),
    ),
  );
}
