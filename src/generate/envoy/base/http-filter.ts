import type { TreeMap } from "../../base/document.js";
import { extension } from "./values.js";

/**
 * Returns one item of `http_filters`, for one of Envoy's own filters.
 *
 * Example: `httpFilter("ratelimit", "RateLimit", {...})` is `envoy.filters.http.ratelimit`.
 */
export function httpFilter(name: string, message: string, fields: TreeMap): TreeMap {
  const type = `envoy.extensions.filters.http.${name}.v3.${message}`;
  return extension(`envoy.filters.http.${name}`, type, fields);
}

/**
 * Returns the gRPC service of a filter. Calls send the cluster's name as their `:authority`, and
 * servers reset calls with istiod's names, such as `outbound|8083||headgate.example.com`, because a
 * host cannot contain `|`. Source: envoy.config.core.v3.GrpcService.
 */
export function envoyGrpc(clusterName: string): TreeMap {
  const authority = clusterName.includes("|") ? clusterName.split("|").at(-1) : undefined;
  return { envoy_grpc: { cluster_name: clusterName, authority } };
}

/**
 * Applies to all requests, or to the share that a runtime key sets. Source:
 * envoy.config.core.v3.RuntimeFractionalPercent.
 */
export function allUnless(runtimeKey: string): TreeMap {
  return {
    default_value: { numerator: 100, denominator: "HUNDRED" },
    runtime_key: runtimeKey,
  };
}
