import type { ServicePolicy } from "../../policy/service-policy.js";
import { broughtEnvoy, type EnvoyBringer, reportOnce } from "../brought-envoy.js";
import { filledDocuments, objectName, objectsDocument } from "../custom-object.js";
import type { Document, Tree } from "../document.js";
import type { EnvoyContext } from "../envoy/context.js";
import { headerBounds } from "../envoy/listener.js";
import { isHeldHere, isOutside } from "../envoy/sides.js";
import type { GeneratedPolicy, GenerateOptions, GenerateProblem, Generator } from "../generator.js";
import { type MetadataPlace, reportMetadata } from "../metadata-needs.js";
import { reportOptions } from "../option-support.js";
import { bootstrapConfigMap } from "./bootstrap-override.js";
import { clusterPatches } from "./cluster-patches.js";
import { sidecarObject } from "./connection-pool.js";
import { destinationRule } from "./destination-rule.js";
import { envoyFilter } from "./envoy-filter.js";
import { connectionPatches, filterPatches } from "./filter-patches.js";
import { headgateObjects } from "./headgate-objects.js";
import { istioRootNamespace } from "./istio-object.js";
import { type MeshName, meshName } from "./mesh-name.js";
import { reportOwnClusters } from "./own-clusters.js";
import {
  callersPlace,
  gatewayPlace,
  matchesByDomain,
  namespaceOf,
  ownPlace,
  type Place,
} from "./place.js";
import { routePatches } from "./route-patches.js";
import { reportGatewayTimes, virtualService } from "./virtual-service.js";

/** Istio 1.22 has Envoy 1.30, and each one since the next. Source: Istio, "Supported releases". */
const bringer: EnvoyBringer = { flag: "--istio-version", minorsAhead: 8 };

/**
 * Objects of Istio: for each service a DestinationRule, a VirtualService and what its own sidecar
 * has; for all callers and for the gateway one EnvoyFilter each; what sidecars and gateways read as
 * they start; and the way to Headgate.
 */
export const generateIstio: Generator = (policy, options) => {
  const problems: GenerateProblem[] = [];
  const envoy = meshContext(policy, options, problems);
  const documents: Document[] = [
    objectsDocument("headgate.yaml", headgateTitle, headgateObjects(envoy)),
    ...policy.services.flatMap((service) => serviceDocuments(service, envoy)),
  ];
  reportOptions("istio", envoy);
  for (const service of policy.services) reportMetadata(service, metadataPlace(envoy));
  if (options.roles.includes("sidecar")) {
    documents.push(...sidecarDocuments(policy, envoy));
    reportOwnClusters(policy, envoy);
  }
  if (options.roles.includes("edge")) documents.push(...gatewayDocuments(policy, envoy));
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
    options: { ...options, envoyVersion: broughtEnvoy(bringer, options.istioVersion) },
    role: "sidecar",
    side: "inbound",
    headgateClusters: {
      decisions: `outbound|${port}||${address}`,
      control: "headgate_control",
      quotas: `outbound|${controlPort}||${address}`,
    },
    report: reportOnce(bringer, problems),
  };
}

/** Users have filters of their own in a mesh, and RequestAuthentications. */
function metadataPlace({ report }: EnvoyContext): MetadataPlace {
  return {
    isClosed: false,
    who: "unless a filter of yours does, nothing",
    hint: "a RequestAuthentication (jwt_authn), or an EnvoyFilter of priority 0 (json_to_metadata)",
    report,
  };
}

const headgateTitle =
  "How the mesh reaches Headgate for decisions.\n" +
  "The namespace of Headgate has sidecars, or the mesh takes plaintext from it.";

/** Breakers, outlier detection, times and retries, for whoever calls. */
function serviceDocuments(service: ServicePolicy, envoy: EnvoyContext): readonly Document[] {
  const mesh = meshName(service);
  if (mesh === undefined) {
    envoy.report({
      id: "HG340",
      spot: { service: service.name, path: ["upstream"] },
      message: "Istio knows services by full host names, and the policy has none of this one",
      hint: "upstream: {address: orders.shop.svc.cluster.local, port: 8080}, with its own names",
      severity: "error",
    });
    return [];
  }
  const parts = serviceObjects(service, mesh, envoy);
  const title =
    `What callers of ${service.name} hold. There is one of each kind for a host: where you ` +
    "have one, move these settings into it.";
  return [objectsDocument(`services/${objectName(service.name)}.yaml`, title, parts)];
}

function serviceObjects(
  service: ServicePolicy,
  mesh: MeshName,
  envoy: EnvoyContext,
): readonly Tree[] {
  const place = { name: objectName(service.name), namespace: namespaceOf(service, envoy) };
  const { envoyVersion } = envoy.options;
  return [
    destinationRule(service, mesh, { ...envoy, place }),
    virtualService(service, mesh, { place, envoyVersion }),
  ];
}

function sidecarDocuments(policy: GeneratedPolicy, envoy: EnvoyContext): readonly Document[] {
  const inside = policy.services.filter((service) => !isOutside(service));
  const own = inside.map((service) => {
    const title =
      `The sidecar of ${service.name}: its pods are found by their labels. Pods have one ` +
      "Sidecar: where you have one for them, move these settings into it.";
    const path = `sidecars/${objectName(service.name)}.yaml`;
    const place = ownPlace(service, envoy);
    return objectsDocument(path, title, [
      sidecarObject(service, place.envoy, place.object),
      ...filterObjects(place),
    ]);
  });
  const namespaces = new Set(policy.services.map((service) => namespaceOf(service, envoy)));
  const context: EnvoyContext = { ...envoy, role: "sidecar" };
  const bootstraps = [...namespaces].map((name) => bootstrapConfigMap(context, name));
  return [
    ...own,
    objectsDocument("callers.yaml", callersTitle, filterObjects(callersPlace(policy, envoy))),
    objectsDocument("bootstrap.yaml", bootstrapTitle, bootstraps),
  ];
}

const callersTitle =
  "What the sidecars of callers do, in the whole mesh: in Istio's root namespace it holds for " +
  "all of them. In another namespace, or with a workloadSelector, it holds for fewer.";

const bootstrapTitle =
  "What a sidecar's Envoy reads as it starts. Pods with the annotation\n" +
  "sidecar.istio.io/bootstrapOverride: headgate-bootstrap\n" +
  "take it, once they are made anew.";

function gatewayDocuments(policy: GeneratedPolicy, envoy: EnvoyContext): readonly Document[] {
  const context: EnvoyContext = { ...envoy, role: "edge" };
  reportGatewayTimes(policy.services, context);
  return [
    objectsDocument(
      "gateway.yaml",
      gatewayTitle(envoy),
      filterObjects(gatewayPlace(policy, envoy)),
    ),
    objectsDocument("gateway-bootstrap.yaml", gatewayBootstrapTitle, [
      bootstrapConfigMap(context, istioRootNamespace),
    ]),
  ];
}

function gatewayTitle({ options }: EnvoyContext): string {
  const where = matchesByDomain(options)
    ? ". "
    : ", on ports 80 and 443, where each is the first host of its VirtualService: before Istio " +
      "1.27 patches find others nowhere. ";
  return (
    `What Istio's gateway does for the hosts of the policy${where}Another gateway's labels ` +
    "stand in proxies.gateway.labels. Times and retries of its routes are those of their " +
    "VirtualServices: services/ has the policy's."
  );
}

const gatewayBootstrapTitle =
  "What the gateway's Envoy reads as it starts. Mount it into the gateway's container " +
  "istio-proxy at /etc/istio/custom-bootstrap, and set there\n" +
  "ISTIO_BOOTSTRAP_OVERRIDE=/etc/istio/custom-bootstrap/custom_bootstrap.json";

/**
 * What proxies at a place do. What is said of one of several services stands in an object of its
 * own: a cluster takes none of more than 1.5 MiB, and `kubectl apply` less.
 */
function filterObjects(place: Place): readonly Tree[] {
  const shared = filterPatches(place);
  const own = place.services.flatMap((service) => {
    const patches = [...routePatches(service, place), ...clusterPatches(service, place)];
    return patches.length === 0 ? [] : [{ service, patches }];
  });
  if (shared.length > 0 || own.length > 0) reportPort(place);
  else if (!holdsBreaker(place) && !boundsListeners(place)) return [];
  const common = [...connectionPatches(place), ...shared];
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

/** What its Sidecar's breaker refuses says when to come back, too. */
function holdsBreaker({ context, services, envoy }: Place): boolean {
  return context === "SIDECAR_INBOUND" && services.some((service) => isHeldHere(service, envoy));
}

/** What the policy says of listeners holds whatever else a place has. */
function boundsListeners({ context, envoy }: Place): boolean {
  const { listener } = envoy.policy.proxies;
  if (context === "SIDECAR_OUTBOUND") return false;
  const isBounded = Object.values(headerBounds(listener)).some((bound) => bound !== undefined);
  return isBounded || (context === "GATEWAY" && listener.escapedSlashes !== undefined);
}

/** Pods may serve more than one port, and only a cluster's name says which one is the service's. */
function reportPort({ context, port, services, envoy }: Place): void {
  const [service] = services;
  if (context !== "SIDECAR_INBOUND" || port !== undefined || service === undefined) return;
  envoy.report({
    id: "HG368",
    spot: { service: service.name, path: ["clusters"] },
    message: "the container's port is not named: what its sidecar does it does on every port",
    hint: 'add clusters: ["inbound|8080||"], with that port',
    severity: "warning",
  });
}
