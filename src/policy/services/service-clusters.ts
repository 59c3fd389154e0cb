import type { ServicePolicy } from "./service-policy.js";

/** The group that an Envoy reports as its own; Istio's is `<app>.<namespace>`. */
export interface ProxyGroup {
  readonly cluster: string;
}

/** Maps clusters of Envoys to services. */
export interface ServiceClusters {
  /** Returns the service that a cluster of an Envoy leads to; undefined: none, or contested. */
  serviceOf(cluster: string, at: ProxyGroup): string | undefined;
  /** Returns the clusters of an Envoy that lead to this service only, according to the policy. */
  clustersOf(service: string, at: ProxyGroup): readonly string[];
  /** Clusters that several services claim, with the claimants. They belong to no service. */
  readonly contested: ReadonlyMap<string, readonly string[]>;
}

/**
 * Returns the names that a service's cluster may have in any Envoy: its own, the one that Istio
 * forms from an address and a port, and those that the policy lists. Source: Istio, "Understand
 * your mesh with istioctl", names of clusters.
 */
export function clusterNames({ name, upstream, clusters }: ServicePolicy): readonly string[] {
  const istio = upstream && `outbound|${upstream.port}||${upstream.address}`;
  return [...new Set([name, ...(istio === undefined ? [] : [istio]), ...clusters])];
}

/** Builds the index from the services of a policy. */
export function indexClusters(services: readonly ServicePolicy[]): ServiceClusters {
  const claims = claimsOf(services, clusterNames);
  const inbound = new Map<string, readonly string[]>();
  const places = claimsOf(services, (service) => {
    const group = groupOf(service);
    return group === undefined ? [] : inboundNames(service).map((name) => place(name, { group }));
  });
  for (const [key, claimants] of places) if (claimants.length === 1) inbound.set(key, claimants);
  const owners = new Map<string, string>();
  const owned = new Map<string, string[]>(services.map(({ name }) => [name, []]));
  const contested = new Map<string, readonly string[]>();
  const byName = new Map(services.map((service) => [service.name, service]));
  for (const [cluster, claimants] of claims) {
    const [owner = "", ...others] = claimants;
    if (others.length > 0) {
      const apart = new Set(claimants.map((name) => groupOf(byName.get(name)) ?? ""));
      const isReportedApart =
        isInbound(cluster) && apart.size === claimants.length && !apart.has("");
      if (!isReportedApart) contested.set(cluster, claimants);
      continue;
    }
    owners.set(cluster, owner);
    owned.get(owner)?.push(cluster);
  }
  for (const [key, claimants] of places) if (claimants.length > 1) contested.set(key, claimants);
  const atPlace = (cluster: string, { cluster: group }: ProxyGroup): string | undefined =>
    isInbound(cluster) ? inbound.get(place(cluster, { group }))?.[0] : undefined;
  return {
    serviceOf: (cluster, at) =>
      atPlace(cluster, at) ?? owners.get(cluster) ?? owners.get(withoutSubset(cluster) ?? ""),
    clustersOf: (service, at) => {
      const names = owned.get(service) ?? [];
      const known = byName.get(service);
      const here = known === undefined ? [] : inboundNames(known);
      const own = here.filter((name) => atPlace(name, at) === service);
      // In this workload, an inbound name may belong to another service.
      const others = names.filter((name) => (atPlace(name, at) ?? service) === service);
      return own.length === 0 && others.length === names.length
        ? names
        : [...new Set([...others, ...own])];
    },
    contested,
  };
}

/** Returns the claimants of each name, in the order of the policy. */
function claimsOf(
  services: readonly ServicePolicy[],
  namesOf: (service: ServicePolicy) => readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const claims = new Map<string, string[]>();
  for (const service of services) {
    for (const name of namesOf(service)) {
      const claimants = claims.get(name);
      if (claimants === undefined) claims.set(name, [service.name]);
      else claimants.push(service.name);
    }
  }
  return claims;
}

/**
 * Returns the workload of a service as Istio names it. Every sidecar names the cluster of its own
 * workload by the port alone, so this name identifies a service only with the workload.
 */
function groupOf(service: ServicePolicy | undefined): string | undefined {
  if (service?.namespace === undefined) return undefined;
  return `${service.workloadLabels["app"] ?? service.name}.${service.namespace}`;
}

/** Returns the cluster names that Istio uses for a workload itself, in its own sidecar. */
function inboundNames({ upstream, clusters }: ServicePolicy): readonly string[] {
  const listed = clusters.filter(isInbound);
  return upstream === undefined ? listed : [...new Set([`inbound|${upstream.port}||`, ...listed])];
}

function isInbound(cluster: string): boolean {
  return cluster.startsWith("inbound|");
}

function place(cluster: string, { group }: { readonly group: string }): string {
  return `${cluster} in ${group}`;
}

/** `outbound|80|v1|orders` is a part of the hosts of `outbound|80||orders`. */
function withoutSubset(cluster: string): string | undefined {
  if (!cluster.startsWith("outbound|")) return undefined;
  const [, port, subset, host, ...rest] = cluster.split("|");
  const isSubset = subset !== "" && host !== undefined;
  return isSubset && rest.length === 0 ? `outbound|${port}||${host}` : undefined;
}
