import { envoyShareDefault } from "../../core/feedback/feedback-settings.js";
import type { ProxyPolicy } from "../proxies/proxies.js";
import type { ServicePolicy } from "./service-policy.js";

/** Properties of a service that determine the threshold. */
type ConfiguredService = Pick<
  ServicePolicy,
  "admission" | "circuitBreakers" | "concurrency" | "priority"
>;

/** Maximum threshold: Envoy stores it in 32 bits. */
export const requestsThresholdMax = 2 ** 32 - 1;

/**
 * Returns the configured `max_requests` of a proxy's circuit breaker: the requests that it admits
 * while no feedback drives it. Both of Envoy's priorities get the same number, so that no limit of
 * other requests refuses critical ones.
 *
 * ```
 * auto = the fleet's largest limit / proxies that are expected     rounded up
 * ```
 *
 * The largest limit is that of the concurrency algorithm, or of admission if that is lower. If
 * there is neither, it is Envoy's own default for each proxy.
 *
 * If each request needs a Headgate permit and no limit is fed back to Envoys, each proxy gets the
 * whole limit, as a backstop. A part of it would refuse requests that Headgate admitted or queues.
 *
 * Example: an algorithm up to 1,000, at most 300 by admission, 8 expected proxies: 38 if breakers
 * are driven, else 300.
 *
 * @returns a whole number from 1
 */
export function configuredRequestsMax(
  service: Omit<ConfiguredService, "priority">,
  { expectedCount }: Pick<ProxyPolicy, "expectedCount">,
): number {
  const { admission, circuitBreakers, concurrency } = service;
  const { requestsMax } = circuitBreakers;
  if (requestsMax !== "auto") return requestsMax;
  const lawMax = concurrency?.settings.limits.max ?? Number.POSITIVE_INFINITY;
  const limitMax = Math.min(lawMax, admission?.maxInFlight ?? Number.POSITIVE_INFINITY);
  if (limitMax === Number.POSITIVE_INFINITY) return envoyShareDefault;
  const proxies = isBackstop(service) ? 1 : Math.max(1, expectedCount);
  const part = Math.ceil(limitMax / proxies);
  return Math.min(requestsThresholdMax, Math.max(1, part));
}

/** Reports whether Headgate's permits bound the requests, so the breaker has no share itself. */
export function isBackstop(service: Pick<ConfiguredService, "admission" | "concurrency">): boolean {
  const isDriven = (service.concurrency?.feedback.length ?? 0) > 0;
  return !isDriven && asksForAdmission(service);
}

/**
 * Reports whether routes of a service use Envoy's priority HIGH, with a threshold of its own: if a
 * rule, the default, or a header that anyone may send makes requests critical. Authentication paths
 * and bypassed paths do not count: every policy has some, and each Envoy would set a permit aside
 * for almost no traffic.
 */
export function hasCriticalRoutes({ priority }: Pick<ServicePolicy, "priority">): boolean {
  const { rules, default: unstated, trust } = priority;
  return unstated === "critical" || trust.anyone || rules.some(({ is }) => is === "critical");
}

/** Returns the requests that a proxy admits for a service by default, at both priorities. */
export function configuredShare(service: ConfiguredService, proxies: ProxyPolicy): number {
  const max = configuredRequestsMax(service, proxies);
  return hasCriticalRoutes(service) ? 2 * max : max;
}

/**
 * Reports whether requests of a service ask Headgate for admission. If an algorithm only observes
 * what Envoys report, and only feeds its limit back, no request needs to ask.
 */
export function asksForAdmission({
  admission,
  concurrency,
}: Pick<ServicePolicy, "admission" | "concurrency">): boolean {
  if (admission === undefined) return false;
  if (concurrency === undefined || concurrency.feedback.length === 0) return true;
  if (concurrency.sources.includes("extProc")) return true;
  const { maxInFlight, maxInFlightPer, shedAt, deadline, queue } = admission;
  const { estimatedWait, gate, throttle, load } = admission;
  const blocks = [maxInFlight, maxInFlightPer, shedAt, deadline, queue, estimatedWait];
  return [...blocks, gate, throttle, load].some((block) => block !== undefined);
}
