import { clusterNames } from "../../policy/services/service-clusters.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";

/** A service as the mesh calls it. */
export interface MeshName {
  /** Fully qualified, such as `orders.shop.svc.cluster.local`. */
  readonly host: string;
  /** The port that callers name. */
  readonly port: number;
}

/** What Istio calls a service; undefined where the policy has no host name of it. */
export function meshName({ upstream }: ServicePolicy): MeshName | undefined {
  if (upstream === undefined || !isMeshHost(upstream.address)) return undefined;
  return { host: upstream.address, port: upstream.port };
}

/**
 * Whether a text can be the full host name of a service of a mesh. Addresses are none; a short
 * name (`orders`, `orders.shop.svc`) means something else in each namespace.
 */
export function isMeshHost(text: string): boolean {
  const labels = text.split(".");
  const last = labels.at(-1) ?? "";
  return labels.length > 1 && !/^\d+$/.test(last) && last !== "svc" && !text.includes(":");
}

/** The virtual host of a service in the routes of its callers' sidecars. */
export function outboundVirtualHost({ host, port }: MeshName): string {
  return `${host}:${port}`;
}

/**
 * The cluster by which a service's own sidecar reaches it, which has the container's port in its
 * name: undefined where the policy's `clusters` does not say it.
 */
export function inboundCluster(service: ServicePolicy): string | undefined {
  return [...service.clusters, ...clusterNames(service)].find((name) =>
    /^inbound\|\d+\|\|/.test(name),
  );
}

/** The port of the service's container; undefined where the policy's `clusters` does not say it. */
export function inboundPort(service: ServicePolicy): number | undefined {
  const port = inboundCluster(service)?.split("|").at(1);
  return port === undefined ? undefined : Number(port);
}

/** Ports of gateways whose virtual hosts are looked for by name: `shop.example.com:443`. */
const gatewayPorts = [80, 443] as const;

/**
 * What istiod calls the virtual hosts of a service in the routes of a gateway, where each is of a
 * VirtualService that has no host before it.
 */
export function gatewayVirtualHosts({ hosts }: ServicePolicy): readonly string[] {
  return hosts.flatMap((host) => gatewayPorts.map((port) => `${host}:${port}`));
}
