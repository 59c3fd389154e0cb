import { clusterNames } from "../../policy/services/service-clusters.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";

/** The name of a service in the mesh. */
export interface MeshName {
  /** Fully qualified, such as `orders.shop.svc.cluster.local`. */
  readonly host: string;
  /** The port that callers use. */
  readonly port: number;
}

/** Returns Istio's name for a service. Undefined if the policy does not have its host name. */
export function meshName({ upstream }: ServicePolicy): MeshName | undefined {
  if (upstream === undefined || !isMeshHost(upstream.address)) return undefined;
  return { host: upstream.address, port: upstream.port };
}

/**
 * Reports whether a text can be the full host name of a service in a mesh. IP addresses cannot. A
 * short name (`orders`, `orders.shop.svc`) means something else in each namespace.
 */
export function isMeshHost(text: string): boolean {
  const labels = text.split(".");
  const last = labels.at(-1) ?? "";
  return labels.length > 1 && !/^\d+$/.test(last) && last !== "svc" && !text.includes(":");
}

/** Returns a service's virtual host in the routes of its callers' sidecars. */
export function outboundVirtualHost({ host, port }: MeshName): string {
  return `${host}:${port}`;
}

/**
 * Returns the cluster by which a service's own sidecar reaches it. Its name has the container's
 * port, so it is undefined if the policy's `clusters` does not contain it.
 */
export function inboundCluster(service: ServicePolicy): string | undefined {
  return [...service.clusters, ...clusterNames(service)].find((name) =>
    /^inbound\|\d+\|\|/.test(name),
  );
}

/** Returns the port of the service's container. Undefined if `clusters` does not contain it. */
export function inboundPort(service: ServicePolicy): number | undefined {
  const port = inboundCluster(service)?.split("|").at(1);
  return port === undefined ? undefined : Number(port);
}

/** Gateway ports whose virtual hosts are matched by name: `shop.example.com:443`. */
const gatewayPorts = [80, 443] as const;

/**
 * Returns istiod's names for a service's virtual hosts in the routes of a gateway, if each belongs
 * to a VirtualService whose first host it is.
 */
export function gatewayVirtualHosts({ hosts }: ServicePolicy): readonly string[] {
  return hosts.flatMap((host) => gatewayPorts.map((port) => `${host}:${port}`));
}
