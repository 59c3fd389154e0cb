import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { EnvoyContext } from "./context.js";

/**
 * Whether a proxy holds what a service's `direction` moves: breakers, outlier detection, retries,
 * shed routes, adaptive concurrency and admission control. An edge proxy is a caller and stands
 * before the service, both.
 */
export function isHeldHere({ direction }: ServicePolicy, { role, side }: EnvoyContext): boolean {
  return role === "edge" || direction === side;
}

/**
 * Whether a service is somebody else's: those who call it hold its limits, and speak TLS to what is
 * no Service of a cluster, so that no sidecar of ours stands beside it.
 */
export function isOutside({ direction, upstream }: ServicePolicy): boolean {
  const isOfCluster = /\.svc(\.|$)/.test(upstream?.address ?? "");
  return direction === "outbound" && upstream?.tls !== undefined && !isOfCluster;
}

/**
 * Whether a proxy asks Headgate about a service's requests: the edge, and the sidecar before the
 * service. A caller's sidecar does not, or a request would count twice.
 */
export function isAskedHere({ role, side }: EnvoyContext): boolean {
  return role === "edge" || side === "inbound";
}
