import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { EnvoyContext } from "./context.js";

/**
 * Reports whether a proxy enforces what a service's `direction` moves: breakers, outlier detection,
 * retries, shed routes, adaptive concurrency and admission control. An edge proxy is both a caller
 * and in front of the service.
 */
export function isHeldHere({ direction }: ServicePolicy, { role, side }: EnvoyContext): boolean {
  return role === "edge" || direction === side;
}

/**
 * Reports whether a service is external. Its callers enforce its limits, and use TLS to an address
 * that is not a Service of a cluster, so none of our sidecars runs next to it.
 */
export function isOutside({ direction, upstream }: ServicePolicy): boolean {
  const isOfCluster = /\.svc(\.|$)/.test(upstream?.address ?? "");
  return direction === "outbound" && upstream?.tls !== undefined && !isOfCluster;
}

/**
 * Reports whether a proxy calls Headgate for a service's requests: the edge and the service's own
 * sidecar do. A caller's sidecar does not, because requests would be counted twice.
 */
export function isAskedHere({ role, side }: EnvoyContext): boolean {
  return role === "edge" || side === "inbound";
}
