import { configuredRequestsMax, isBackstop } from "../../../policy/services/configured-share.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { CircuitBreakerPolicy } from "../../../policy/upstream/circuit-breakers.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";

/**
 * Returns the circuit breakers of a service's cluster, one row for each Envoy priority. HIGH has a
 * threshold of its own, so that limits of other requests never refuse critical ones.
 *
 * Source: envoy.config.cluster.v3.CircuitBreakers.
 */
export function circuitBreakersTree(service: ServicePolicy, context: EnvoyContext): TreeMap {
  const { circuitBreakers: policy } = service;
  const { connectionsMax, pendingRequestsMax, retriesMax, retryBudget } = policy;
  const requestsMax = configuredRequestsMax(service, context.policy.proxies);
  const explanation = requestsNote(service, context);
  const threshold = (priority: "DEFAULT" | "HIGH", requests: Tree): TreeMap => ({
    priority,
    max_connections: connectionsMax,
    max_pending_requests: pendingRequestsMax,
    max_requests: requests,
    // If there is a retry budget, Envoy ignores this number.
    max_retries: retryBudget === undefined ? retriesMax : undefined,
    retry_budget: retryBudget && {
      budget_percent: { value: retryBudget.percent },
      min_retry_concurrency: retryBudget.retriesMin,
    },
    // Exports the remaining capacity as a gauge, which shows that a breaker is about to open.
    track_remaining: true,
  });
  const atDefault = explanation === undefined ? requestsMax : noted(explanation, requestsMax);
  const high = noted(
    "For critical requests, which the threshold above never refuses.",
    requestsMax,
  );
  return {
    thresholds: [threshold("DEFAULT", atDefault), threshold("HIGH", high)],
    per_host_thresholds: hostThresholds(policy),
  };
}

/** Source: CircuitBreakers, `per_host_thresholds`, which supports only connections. */
export function hostThresholds({
  hostConnectionsMax,
}: CircuitBreakerPolicy): readonly Tree[] | undefined {
  return hostConnectionsMax === undefined ? undefined : [{ max_connections: hostConnectionsMax }];
}

/** Explains the maximum number of requests. Undefined if the policy sets that number itself. */
function requestsNote(service: ServicePolicy, { policy }: EnvoyContext): string | undefined {
  const { expectedCount } = policy.proxies;
  const isDriven = service.concurrency?.feedback.includes("circuitBreakers") === true;
  const driven = isDriven
    ? "Applies while Headgate does not drive it. Otherwise Headgate sends this proxy " +
      "its share of the fleet's limit at run time.\n"
    : "";
  if (service.circuitBreakers.requestsMax !== "auto") return driven === "" ? undefined : driven;
  const limitMax = limitOf(service);
  const origin =
    limitMax === undefined
      ? "Envoy's own default, because the policy sets no limit for the service."
      : isBackstop(service)
        ? "The maximum limit of the service. Headgate's permits admit no more in the whole fleet."
        : `The maximum limit of the service, ${limitMax}, divided by the ` +
          `${expectedCount} expected ${expectedCount === 1 ? "proxy" : "proxies"}, ` +
          "rounded up.";
  return `${driven}${origin}`;
}

function limitOf({ admission, concurrency }: ServicePolicy): number | undefined {
  const limits = [concurrency?.settings.limits.max, admission?.maxInFlight];
  const known = limits.filter((limit) => limit !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** Maximum threshold that Envoy supports: no limit. */
const thresholdMax = 2 ** 32 - 1;

/** Returns breakers that never open, since Envoy's defaults (1,024) are unconfigured limits. */
export function openBreakers(): TreeMap {
  const names = ["max_connections", "max_pending_requests", "max_requests", "max_retries"];
  const limits = Object.fromEntries(names.map((name) => [name, thresholdMax]));
  const priorities = ["DEFAULT", "HIGH"];
  return { thresholds: priorities.map((priority) => ({ priority, ...limits })) };
}
