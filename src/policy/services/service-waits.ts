import { limitsOf, type Rule } from "../../core/limits/limit.js";
import type { ServicePolicy } from "./service-policy.js";

type WaitingService = Pick<ServicePolicy, "admission" | "rateLimit">;

/** Returns the maximum time for which ext_proc may hold a request of a service, in milliseconds. */
export function serviceWaits(rules: readonly Rule[]): (service: WaitingService) => number {
  const delaysMs = new Map<string, number>();
  for (const rule of rules) {
    for (const { over } of limitsOf(rule)) {
      if (over?.kind !== "delay") continue;
      delaysMs.set(rule.domain, Math.max(over.maxMs, delaysMs.get(rule.domain) ?? 0));
    }
  }
  return ({ admission, rateLimit }) => {
    const isDelayed = rateLimit?.inExtProc === true;
    const delayMs = isDelayed ? (delaysMs.get(rateLimit.domain) ?? 0) : 0;
    return delayMs + (admission?.queue?.waitMsMax ?? 0);
  };
}
