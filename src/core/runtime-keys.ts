import type { Priority } from "./admission-settings.js";

/** The runtime layer with what the fleet's loop has decided; Envoys ask for it by this name. */
export const runtimeLayerName = "headgate";

/** Envoy's own two priorities of an upstream. Source: envoy.config.core.v3.RoutingPriority. */
export type BreakerPriority = "default" | "high";

/** Thresholds of a circuit breaker that count requests. */
export type BreakerThreshold = "max_requests" | "max_pending_requests";

/**
 * The runtime key of a circuit breaker's threshold. Dots and bars in a cluster's name stay.
 *
 * Example: `circuit_breakers.orders.default.max_requests`.
 *
 * Source: Envoy, "Circuit breaking", runtime.
 */
export function breakerKey(
  cluster: string,
  priority: BreakerPriority,
  threshold: BreakerThreshold,
): string {
  return `circuit_breakers.${cluster}.${priority}.${threshold}`;
}

/**
 * The runtime key of the percentage of a class that a generated route refuses by itself.
 *
 * Example: `headgate.shed.orders.low`.
 */
export function shedKey(service: string, priority: Priority): string {
  return `headgate.shed.${service}.${priority}`;
}

/**
 * The two keys that, set to one number, pin the limit of every `adaptive_concurrency` filter of a
 * process. Source: Envoy, "Adaptive concurrency", runtime.
 */
export const concurrencyPinKeys: readonly string[] = [
  "adaptive_concurrency.gradient_controller.min_concurrency_limit",
  "adaptive_concurrency.gradient_controller.max_concurrency_limit",
];
