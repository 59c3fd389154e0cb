import type { Priority } from "../admission/priority.js";

/** The name of the runtime layer with the decisions of the loop. Envoys request it by this name. */
export const runtimeLayerName = "headgate";

/** Envoy's own two priorities of an upstream. Source: envoy.config.core.v3.RoutingPriority. */
export type BreakerPriority = "default" | "high";

/** Thresholds of a circuit breaker that count requests. */
type BreakerThreshold = "max_requests" | "max_pending_requests" | "max_retries";

/** Parts of a retry budget. */
type RetryBudgetPart = "budget_percent" | "min_retry_concurrency";

/**
 * Returns the runtime key of a circuit breaker's threshold. Dots and bars in cluster names stay.
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
 * Returns the runtime key of a part of a circuit breaker's retry budget. If any part is set, a
 * budget replaces `max_retries` as the bound of retries, whatever is configured.
 *
 * Example: `circuit_breakers.orders.default.retry_budget.budget_percent`.
 *
 * Source: Envoy, "Circuit breaking", runtime.
 */
export function retryBudgetKey(
  cluster: string,
  priority: BreakerPriority,
  part: RetryBudgetPart,
): string {
  return `circuit_breakers.${cluster}.${priority}.retry_budget.${part}`;
}

/**
 * Returns the runtime key of the percentage of a class that a generated route refuses by itself.
 *
 * Example: `headgate.shed.orders.low`.
 */
export function shedKey(service: string, priority: Priority): string {
  return `headgate.shed.${service}.${priority}`;
}

/**
 * Returns the runtime key of the percentage of visitors without a ticket that generated routes turn
 * away from a waiting room.
 *
 * Example: `headgate.waiting_room.shop.reject`.
 */
export function roomRejectKey(room: string): string {
  return `headgate.waiting_room.${room}.reject`;
}

/**
 * Returns the runtime key of the part of a service's requests for which a generated local rate
 * limit is enforced (`filter_enforced` of Envoy's filter). If the policy wants that limit only
 * without Headgate, Headgate sends 0 while it runs.
 *
 * Example: `headgate.local_rate_limit.orders`.
 */
export function localRateLimitKey(service: string): string {
  return `headgate.local_rate_limit.${service}`;
}

/**
 * Returns the runtime key that switches a service's generated admission control (`enabled` of
 * Envoy's filter). If the policy wants that control only without Headgate, Headgate sends false
 * while it runs.
 *
 * Example: `headgate.admission_control.orders`.
 */
export function admissionControlKey(service: string): string {
  return `headgate.admission_control.${service}`;
}

/**
 * The two keys that, set to one number, pin the limit of every `adaptive_concurrency` filter of a
 * process. Source: Envoy, "Adaptive concurrency", runtime.
 */
export const concurrencyPinKeys: readonly string[] = [
  "adaptive_concurrency.gradient_controller.min_concurrency_limit",
  "adaptive_concurrency.gradient_controller.max_concurrency_limit",
];
