import type { ServicePolicy } from "./service-policy.js";

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
