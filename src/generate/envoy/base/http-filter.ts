import type { TreeMap } from "../../base/document.js";
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
 * Where a filter finds a gRPC server. Calls state the cluster's name as their `:authority`, and
 * servers reset those with istiod's names, such as `outbound|8083||headgate.example.com`: a `|` is
 * in no host. Source: envoy.config.core.v3.GrpcService.
 */
export function envoyGrpc(clusterName: string): TreeMap {
  const authority = clusterName.includes("|") ? clusterName.split("|").at(-1) : undefined;
  return { envoy_grpc: { cluster_name: clusterName, authority } };
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
