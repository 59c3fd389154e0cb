import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { type ObjectPlace, objectName } from "../base/custom-object.js";
import { isAtLeastVersion } from "../base/generate-options.js";
import type { GeneratedPolicy, GenerateOptions, MinorVersion } from "../base/generator.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import type { HostMatch, PatchPlace } from "./envoy-filter.js";
import { gatewayVirtualHosts, inboundPort, meshName, outboundVirtualHost } from "./mesh-name.js";

/** Namespace whose objects hold for the whole mesh, and where its gateways are by default. */
export const istioRootNamespace = "istio-system";

/** Labels of the pods of Istio's own gateway. */
const istioGatewayLabels: Readonly<Record<string, string>> = { istio: "ingressgateway" };

/** Proxies that one EnvoyFilter is for, and what they serve. */
export interface IstioPlace extends PatchPlace {
  readonly object: ObjectPlace;
  /** Undefined: every workload of the namespace, and of the mesh in the root namespace. */
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly services: readonly ServicePolicy[];
  readonly envoy: EnvoyContext;
}

/**
 * The namespace of a service's objects, which is that of its pods: selectors reach no further. The
 * host name of a service of Kubernetes says it, too.
 */
export function serviceNamespace(
  { namespace, upstream }: ServicePolicy,
  envoy: EnvoyContext,
): string {
  const [, ofHost] = /^[^.]+\.([^.]+)\.svc\./.exec(upstream?.address ?? "") ?? [];
  return namespace ?? ofHost ?? envoy.options.namespace;
}

/** A service's own sidecar. */
export function ownPlace(service: ServicePolicy, envoy: EnvoyContext): IstioPlace {
  return {
    context: "SIDECAR_INBOUND",
    port: inboundPort(service),
    object: {
      name: objectName(`headgate-${service.name}`),
      namespace: serviceNamespace(service, envoy),
    },
    labels: service.workloadLabels,
    services: [service],
    envoy: { ...envoy, role: "sidecar", side: "inbound" },
  };
}

/** The sidecars of all who call. */
export function callersPlace({ services }: GeneratedPolicy, envoy: EnvoyContext): IstioPlace {
  return {
    context: "SIDECAR_OUTBOUND",
    port: undefined,
    object: { name: "headgate-callers", namespace: istioRootNamespace },
    labels: undefined,
    services,
    envoy: { ...envoy, role: "sidecar", side: "outbound" },
  };
}

/**
 * The mesh's gateway. Where services' own sidecars are generated too it is one of their callers: or
 * a request would be asked about twice, and charged twice.
 */
export function gatewayPlace(
  { services, proxies }: GeneratedPolicy,
  envoy: EnvoyContext,
): IstioPlace {
  const isCaller = envoy.options.roles.includes("sidecar");
  return {
    context: "GATEWAY",
    port: undefined,
    object: { name: "headgate-gateway", namespace: istioRootNamespace },
    labels: proxies.gateway.labels ?? istioGatewayLabels,
    services,
    envoy: isCaller
      ? { ...envoy, role: "sidecar", side: "outbound", isMeshGateway: true }
      : { ...envoy, role: "edge", side: "inbound", hasQuotasByHost: true },
  };
}

/** From which Istio on a patch finds virtual hosts by their domains. */
const domainMatchSince: MinorVersion = { major: 1, minor: 27 };

/**
 * Whether a gateway's virtual hosts are found by their domains, on each listener: a name is that of
 * one port, and of the first host of a VirtualService.
 */
export function matchesByDomain({ istioVersion }: Pick<GenerateOptions, "istioVersion">): boolean {
  return isAtLeastVersion(istioVersion, domainMatchSince);
}

/** The virtual hosts of a service at a place. */
export function virtualHostsAt(
  service: ServicePolicy,
  { context, envoy }: IstioPlace,
): readonly HostMatch[] {
  switch (context) {
    case "SIDECAR_INBOUND":
      return [undefined];
    case "SIDECAR_OUTBOUND": {
      const mesh = meshName(service);
      return mesh === undefined ? [] : [{ name: outboundVirtualHost(mesh) }];
    }
    case "GATEWAY":
      return matchesByDomain(envoy.options)
        ? service.hosts.map((host) => ({ domainName: host }))
        : gatewayVirtualHosts(service).map((name) => ({ name }));
  }
}
