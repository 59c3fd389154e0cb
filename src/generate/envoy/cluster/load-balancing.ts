import type { LoadBalancingPolicy } from "../../../policy/upstream/load-balancing.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import { durationText } from "../base/values.js";

/**
 * Returns the load balancing of a cluster: the less busy of two random hosts, or a hash if similar
 * requests must go to the same host. Source: envoy.config.cluster.v3.Cluster.
 */
export function clusterBalancing(policy: LoadBalancingPolicy): TreeMap {
  const { hash, slowStart } = policy;
  return {
    lb_policy: hash === undefined ? "LEAST_REQUEST" : "MAGLEV",
    least_request_lb_config: slowStart && {
      slow_start_config: {
        slow_start_window: durationText(slowStart.windowMs),
        min_weight_percent: { value: slowStart.weightPercentMin },
      },
    },
    common_lb_config: commonBalancing(policy),
  };
}

const zoneNote =
  "Needs hosts with a locality (EDS), node.locality of this proxy, and a cluster " +
  "of the proxies themselves in cluster_manager.local_cluster_name.";

function commonBalancing(policy: LoadBalancingPolicy): TreeMap | undefined {
  const { zoneAware } = policy;
  const common: TreeMap = {
    ...panicThreshold(policy),
    zone_aware_lb_config:
      zoneAware && noted(zoneNote, { min_cluster_size: zoneAware.clusterSizeMin }),
  };
  return Object.values(common).every((value) => value === undefined) ? undefined : common;
}

/** Ratio of healthy hosts below which Envoy ignores their health. Undefined: its own 50 %. */
export function panicThreshold({
  panicThresholdPercent,
}: LoadBalancingPolicy): TreeMap | undefined {
  return panicThresholdPercent === undefined
    ? undefined
    : { healthy_panic_threshold: { value: panicThresholdPercent } };
}

/** Returns what requests of a route are hashed by. Source: envoy.config.route.v3.RouteAction. */
export function hashPolicy({ hash }: LoadBalancingPolicy): readonly Tree[] | undefined {
  switch (hash?.kind) {
    case undefined:
      return undefined;
    case "header":
      return [{ header: { header_name: hash.name } }];
    case "query":
      return [{ query_parameter: { name: hash.name } }];
    case "cookie":
      return [{ cookie: { name: hash.name, ttl: durationText(hash.ttlMs), path: "/" } }];
    case "sourceIp":
      return [{ connection_properties: { source_ip: true } }];
  }
}
