import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { type ObjectPlace, objectName } from "../base/custom-object.js";
import { isAtLeastVersion } from "../base/generate-options.js";
import type { GeneratedPolicy, GenerateOptions, MinorVersion } from "../base/generator.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import type { HostMatch, PatchPlace } from "./envoy-filter.js";
import { gatewayVirtualHosts, inboundPort, meshName, outboundVirtualHost } from "./mesh-name.js";

/** Namespace whose objects apply to the whole mesh, and the default namespace of its gateways. */
export const istioRootNamespace = "istio-system";

/** Pod labels of Istio's own gateway. */
const istioGatewayLabels: Readonly<Record<string, string>> = { istio: "ingressgateway" };

/** The proxies that one EnvoyFilter applies to, and their services. */
export interface IstioPlace extends PatchPlace {
  readonly object: ObjectPlace;
  /** Undefined: every workload of the namespace, or of the mesh in the root namespace. */
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly services: readonly ServicePolicy[];
  readonly envoy: EnvoyContext;
}

/**
 * Returns the namespace of a service's objects. It is that of its pods, because selectors only
 * match pods there. The host name of a Kubernetes Service also contains it.
 */
export function serviceNamespace(
  { namespace, upstream }: ServicePolicy,
  envoy: EnvoyContext,
): string {
  const [, ofHost] = /^[^.]+\.([^.]+)\.svc\./.exec(upstream?.address ?? "") ?? [];
  return namespace ?? ofHost ?? envoy.options.namespace;
}

/** Returns a service's own sidecar. */
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

/** Returns the sidecars of all callers. */
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
 * Returns the mesh's gateway. If services' own sidecars are generated too, it is one of their
 * callers. Otherwise requests would be checked and charged twice.
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

/** First version of Istio whose patches match virtual hosts by their domains. */
const domainMatchSince: MinorVersion = { major: 1, minor: 27 };

/**
 * Reports whether a gateway's virtual hosts are matched by their domains, on every listener. A name
 * only matches one port, and the first host of a VirtualService.
 */
export function matchesByDomain({ istioVersion }: Pick<GenerateOptions, "istioVersion">): boolean {
  return isAtLeastVersion(istioVersion, domainMatchSince);
}

/** Returns the virtual hosts of a service at a place. */
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
