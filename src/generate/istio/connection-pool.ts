import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { type ObjectPlace, specObject } from "../base/custom-object.js";
import { noted, type TreeMap } from "../base/document.js";
import type { GenerateOptions } from "../base/generator.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { durationText } from "../envoy/base/values.js";
import { requestsMaxOf } from "../envoy/cluster/requests-max.js";

/** Maximum number that Istio accepts here: no limit. */
const poolMax = 2_147_483_647;

/**
 * Reports whether callers enforce a service's breaker. If its own sidecar does, they do not,
 * because a caller's share of a limit and a sidecar's share are different numbers.
 */
export function isHeldByCallers(
  { direction }: ServicePolicy,
  { roles }: Pick<GenerateOptions, "roles">,
): boolean {
  return direction === "outbound" || !roles.includes("sidecar");
}

/** Source: Istio, ConnectionPoolSettings. */
type ConnectionPool = Readonly<Record<"tcp" | "http", TreeMap>>;

/** Returns the limits of a service's cluster. Source: Istio, ConnectionPoolSettings. */
export function limitedPool(service: ServicePolicy, context: EnvoyContext): ConnectionPool {
  const { circuitBreakers, timeouts } = service;
  return {
    tcp: {
      maxConnections: circuitBreakers.connectionsMax,
      connectTimeout: durationText(timeouts.connectMs),
      maxConnectionDuration: timeouts.maxConnectionMs && durationText(timeouts.maxConnectionMs),
    },
    http: {
      http1MaxPendingRequests: circuitBreakers.pendingRequestsMax,
      http2MaxRequests: requestsMaxOf(service, context),
      maxRetries: circuitBreakers.retriesMax,
    },
  };
}

/**
 * Returns how callers' connections to a service are upgraded. Istio applies it to callers only: a
 * service's own sidecar forwards in the protocol that it receives.
 */
export function h2UpgradePolicy({ upstream }: ServicePolicy): TreeMap {
  if (upstream?.protocol === undefined) return {};
  const policy = upstream.protocol === "http2" ? "UPGRADE" : "DO_NOT_UPGRADE";
  return { h2UpgradePolicy: policy };
}

/** No limits except on retries, which callers always enforce, and a connection timeout. */
export function openPool({ circuitBreakers, timeouts }: ServicePolicy): ConnectionPool {
  return {
    tcp: {
      connectTimeout: durationText(timeouts.connectMs),
      maxConnectionDuration: timeouts.maxConnectionMs && durationText(timeouts.maxConnectionMs),
    },
    http: { maxRetries: circuitBreakers.retriesMax },
  };
}

/**
 * Returns the limits of a service's own sidecar. Without them, the DestinationRule's limits for
 * callers would apply there too. Source: Istio, Sidecar, `inboundConnectionPool`.
 */
export function sidecarObject(
  service: ServicePolicy,
  context: EnvoyContext,
  place: ObjectPlace,
): TreeMap {
  const open = {
    tcp: { maxConnections: poolMax, connectTimeout: durationText(service.timeouts.connectMs) },
    http: { http1MaxPendingRequests: poolMax, http2MaxRequests: poolMax },
  };
  return specObject({ apiVersion: "networking.istio.io/v1", kind: "Sidecar" }, place, {
    workloadSelector: { labels: { ...service.workloadLabels } },
    inboundConnectionPool:
      service.direction === "inbound"
        ? limitedPool(service, context)
        : noted("No limits here: its callers enforce them.", open),
  });
}
