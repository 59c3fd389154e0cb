import type { ServicePolicy } from "./service-policy.js";

/** Which clusters of Envoys lead to which service. */
export interface ServiceClusters {
  /** The service that a cluster leads to; undefined: none, or more than one claims it. */
  serviceOf(cluster: string): string | undefined;
  /** The clusters that lead to a service and to no other. */
  clustersOf(service: string): readonly string[];
  /** Clusters that more than one service claims, and who: they belong to nobody. */
  readonly contested: ReadonlyMap<string, readonly string[]>;
}

/**
 * The names that a service's cluster may have: its own, and the one that Istio makes of an address
 * and a port. Source: Istio, "Understand your mesh with istioctl", names of clusters.
 */
export function clusterNames({ name, upstream }: ServicePolicy): readonly string[] {
  return upstream === undefined ? [name] : [name, `outbound|${upstream.port}||${upstream.address}`];
}

/** Looks through the services of a policy, once. */
export function indexClusters(services: readonly ServicePolicy[]): ServiceClusters {
  const claims = new Map<string, string[]>();
  for (const service of services) {
    for (const cluster of clusterNames(service)) {
      const claimants = claims.get(cluster);
      if (claimants === undefined) claims.set(cluster, [service.name]);
      else claimants.push(service.name);
    }
  }
  const owners = new Map<string, string>();
  const clusters = new Map<string, string[]>(services.map(({ name }) => [name, []]));
  const contested = new Map<string, readonly string[]>();
  for (const [cluster, claimants] of claims) {
    const [owner = "", ...others] = claimants;
    if (others.length > 0) {
      contested.set(cluster, claimants);
      continue;
    }
    owners.set(cluster, owner);
    clusters.get(owner)?.push(cluster);
  }
  return {
    serviceOf: (cluster) => owners.get(cluster),
    clustersOf: (service) => clusters.get(service) ?? [],
    contested,
  };
}
