import { type Document, noted, type Tree, type TreeMap } from "../../base/document.js";
import { isPlainList, isPlainMap, type PlainValue, plainTree } from "../../base/plain-tree.js";
import type { EnvoyContext } from "../base/context.js";
import { serviceDomains } from "../base/domains.js";
import { headgateClusters } from "../base/headgate-clusters.js";
import type { ProxyPlan, ProxySide } from "../base/proxies.js";
import { socketAddress } from "../base/values.js";
import { serviceClusters } from "../cluster/upstream-cluster.js";
import { httpFilters } from "../http/http-filters.js";
import { layeredRuntime } from "../http/layered-runtime.js";
import { http3Listener, listener } from "../http/listener.js";
import { priorityHeaderFilters } from "../http/priority-header.js";
import { telemetry } from "../http/telemetry.js";
import { virtualHost } from "../http/virtual-host.js";
import { overload } from "./overload.js";
import { adminCluster, statisticsListener } from "./statistics.js";
import { tcpCluster, tcpListener } from "./tcp-listener.js";

/** The parts of one listener, before they are assembled. */
export interface SideParts {
  readonly side: ProxySide;
  readonly httpFilters: readonly Tree[];
  readonly virtualHosts: readonly Tree[];
  readonly clusters: readonly Tree[];
}

/** Generates the parts of one listener. */
export function sideParts(side: ProxySide): SideParts {
  const { services, context } = side;
  const { filters, names } = httpFilters(services, context);
  const domains = serviceDomains(services, context);
  return {
    side,
    httpFilters: [...priorityHeaderFilters(services, context), ...filters],
    virtualHosts: services.map((service, index) =>
      virtualHost(service, context, { domains: domains[index] ?? [], filters: names }),
    ),
    clusters: services.flatMap((service) => serviceClusters(service, context)),
  };
}

/**
 * Generates a complete proxy. It refers to Headgate only if its services need it, so it contains
 * only those Headgate clusters that it refers to.
 *
 * Source: envoy.config.bootstrap.v3.Bootstrap.
 */
export function bootstrap(plan: ProxyPlan): Document {
  const { context, folder, own, sides } = plan;
  const { listener: ports } = context.policy.proxies;
  const parts = sides.map(sideParts);
  const reported: TreeMap = {
    ...telemetry(context),
    layered_runtime: layeredRuntime(context),
    overload_manager: overload(context),
  };
  const listeners = parts.flatMap(({ side, httpFilters: filters, virtualHosts }) => {
    const name = side.listener;
    const port = name === "ingress" ? ports.port : ports.outboundPort;
    const given = { name, port, httpFilters: filters, virtualHosts };
    const http3 = http3Listener(given, side.context);
    return [listener(given, side.context), ...(http3 === undefined ? [] : [http3])];
  });
  const tcp = tcpParts(plan);
  const used = referredClusters([reported, { listeners: [...listeners, ...tcp.listeners] }]);
  const clusters = [
    ...parts.flatMap((part) => part.clusters),
    ...tcp.clusters,
    ...usedClusters(context, used),
    adminCluster(context),
  ];
  return {
    path: `${folder}/envoy.yaml`,
    kind: { format: "yaml", is: "envoy", message: "envoy.config.bootstrap.v3.Bootstrap" },
    title: titleOf(plan),
    parts: [
      {
        node: nodeOf(context.policy.name, own?.name),
        admin: noted(
          "Anyone who reaches the admin port controls this proxy, so it listens on loopback only.",
          {
            address: socketAddress("127.0.0.1", ports.adminPort),
          },
        ),
        ...reported,
        static_resources: {
          listeners: [...listeners, ...tcp.listeners, statisticsListener(context)],
          clusters,
        },
      },
    ],
  };
}

/** Returns what an edge proxy has for services that do not use HTTP. Empty for other proxies. */
export function tcpParts({ own, context }: ProxyPlan): Record<"listeners" | "clusters", Tree[]> {
  const policies = own === undefined ? context.policy.proxies.tcpListeners : [];
  return {
    listeners: policies.map((policy) => tcpListener(policy, context)),
    clusters: policies.map((policy) => tcpCluster(policy, context)),
  };
}

function nodeOf(policy: string, service: string | undefined): TreeMap {
  const name = service ?? "edge";
  const why =
    "Give each proxy its own id (or start it with --service-node). Two proxies " +
    "with the same id would share one share.";
  return { id: noted(why, `${policy}-${name}`), cluster: name };
}

function titleOf({ folder, own, sides }: ProxyPlan): string {
  const run = `Run it: envoy -c ${folder}/envoy.yaml`;
  if (own === undefined) return `The proxy in front of all services.\n${run}`;
  const calls = sides.length > 1 ? ", and for its own outbound calls" : "";
  return `The sidecar proxy of ${own.name}${calls}.\n${run}`;
}

/** Returns the Headgate clusters that something refers to. */
export function usedClusters(context: EnvoyContext, used: ReadonlySet<string>): readonly Tree[] {
  return headgateClusters(context).filter((cluster) => {
    const plain = plainTree(cluster);
    const name = isPlainMap(plain) ? plain["name"] : undefined;
    return typeof name === "string" && used.has(name);
  });
}

/** Returns the names of the clusters of all gRPC services in these trees. */
export function referredClusters(trees: readonly Tree[]): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (value: PlainValue): void => {
    if (isPlainList(value)) value.forEach(visit);
    if (!isPlainMap(value)) return;
    const grpc = value["envoy_grpc"];
    const name = isPlainMap(grpc) ? grpc["cluster_name"] : undefined;
    if (typeof name === "string") names.add(name);
    for (const one of Object.values(value)) visit(one);
  };
  for (const tree of trees) visit(plainTree(tree));
  return names;
}
