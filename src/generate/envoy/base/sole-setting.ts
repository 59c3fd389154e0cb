import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { EnvoyContext } from "./context.js";
import { isHeldHere } from "./sides.js";

/** A filter that Envoy has once for all routes of a listener. */
interface SoleFilter<Setting> {
  /** Of the problem, where services differ. */
  readonly id: "HG322" | "HG323";
  /** As the policy names it. */
  readonly name: string;
  /** In words. */
  readonly what: string;
  readonly of: (service: ServicePolicy) => Setting | undefined;
}

/**
 * The setting of a filter that has none by route: that of all services that have one. Where they
 * differ the first one's is answered, and every service that has another is reported.
 */
export function soleSetting<Setting extends object>(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
  { id, name, what, of }: SoleFilter<Setting>,
): Setting | undefined {
  const held = services.filter((service) => isHeldHere(service, context));
  const first = held.find((service) => of(service) !== undefined);
  const setting = first && of(first);
  if (first === undefined || setting === undefined) return undefined;
  for (const service of held) {
    const other = of(service);
    if (other === undefined || isSame(other, setting)) continue;
    context.report({
      id,
      spot: { service: service.name, path: [name] },
      message:
        `Envoy has one ${what} filter for all services of a listener, and ` +
        `${service.name} needs another configuration than ${first.name}`,
      hint:
        `the same for all of them under proxies.${name}, a sidecar for each ` +
        "service (--role sidecar), or circuit breakers, which each service has " +
        "separately",
    });
  }
  return setting;
}

/** Both were read by the same reader, which has its names in one order. */
function isSame(one: object, other: object): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
