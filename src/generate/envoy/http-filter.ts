import type { TreeMap } from "../document.js";
import { extension } from "./values.js";

/**
 * One item of `http_filters`, of Envoy's own filters.
 *
 * Example: `httpFilter("ratelimit", "RateLimit", {...})` is `envoy.filters.http.ratelimit`.
 */
export function httpFilter(name: string, message: string, fields: TreeMap): TreeMap {
  const type = `envoy.extensions.filters.http.${name}.v3.${message}`;
  return extension(`envoy.filters.http.${name}`, type, fields);
}

/**
 * A service that is asked over a cluster. What a mesh calls a cluster (`outbound|18000||host`) is
 * no authority that HTTP/2 allows, and servers reset who asks by it: its host is said instead.
 *
 * Source: envoy.config.core.v3.GrpcService.EnvoyGrpc.
 */
export function envoyGrpc(clusterName: string): TreeMap {
  const [, host] = /\|([^|]+)$/.exec(clusterName) ?? [];
  return { envoy_grpc: { cluster_name: clusterName, authority: host } };
}

/**
 * All requests, or a share of them that a runtime key says. Source:
 * envoy.config.core.v3.RuntimeFractionalPercent.
 */
export function allUnless(runtimeKey: string): TreeMap {
  return {
    default_value: { numerator: 100, denominator: "HUNDRED" },
    runtime_key: runtimeKey,
  };
}
