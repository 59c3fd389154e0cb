import { envoyShareDefault } from "../../core/feedback/feedback-settings.js";
import type { ProxyPolicy } from "../proxies/proxies.js";
import type { ServicePolicy } from "./service-policy.js";

/** What of a service the threshold depends on. */
type ConfiguredService = Pick<
  ServicePolicy,
  "admission" | "circuitBreakers" | "concurrency" | "priority"
>;

/** The largest threshold there is: Envoy holds it in 32 bits. */
export const requestsThresholdMax = 2 ** 32 - 1;

/**
 * `max_requests` of a proxy's circuit breaker as it is configured: what it lets into work while
 * nobody drives it. The same number stands at both of Envoy's priorities, so that what is critical
 * is refused by no limit of the others.
 *
 * ```
 * auto = the fleet's largest limit / proxies that are expected     rounded up
 * ```
 *
 * The largest limit is the law's, or what admission holds where that is less; where there is
 * neither, it is Envoy's own default for each proxy.
 *
 * Where each request has a permit of Headgate's and no limit goes back to Envoys, it is the whole
 * limit at each proxy: a backstop. As a part of it, it would refuse what Headgate has let in or
 * queues.
 *
 * Example: a law up to 1,000, 300 at most by admission, 8 proxies expected: 38 where breakers are
 * driven, else 300.
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

/** Whether Headgate's permits bound what a breaker would, and it has no share of its own. */
export function isBackstop(service: Pick<ConfiguredService, "admission" | "concurrency">): boolean {
  const isDriven = (service.concurrency?.feedback.length ?? 0) > 0;
  return !isDriven && asksForAdmission(service);
}

/**
 * Whether routes of a service run at Envoy's priority HIGH, with a threshold of their own: where a
 * rule, the default or a header that everybody may send makes requests critical. Paths of
 * authentication and bypassed ones do not count: every policy has some, and a permit of each Envoy
 * would be set aside for next to no traffic.
 */
export function hasCriticalRoutes({ priority }: Pick<ServicePolicy, "priority">): boolean {
  const { rules, default: unstated, trust } = priority;
  return unstated === "critical" || trust.anyone || rules.some(({ is }) => is === "critical");
}

/** What a proxy lets into work for a service while nobody drives it, at both priorities. */
export function configuredShare(service: ConfiguredService, proxies: ProxyPolicy): number {
  const max = configuredRequestsMax(service, proxies);
  return hasCriticalRoutes(service) ? 2 * max : max;
}

/**
 * Whether requests of a service ask Headgate for admission. A law that only listens to what Envoys
 * tell, and only sends its limit back, needs no request to ask.
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
