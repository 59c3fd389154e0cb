import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { EnvoyContext } from "./context.js";
import { isHeldHere } from "./sides.js";

/** A filter that has one configuration for all routes of a listener. */
interface SoleFilter<Setting> {
  /** The problem to report if services differ. */
  readonly id: "HG322" | "HG323";
  /** Name of the setting in the policy. */
  readonly name: string;
  /** The filter's name in words. */
  readonly what: string;
  readonly of: (service: ServicePolicy) => Setting | undefined;
}

/**
 * Returns the setting of a filter that has no settings by route: the common setting of the services
 * that have one. If they differ, returns the first, and reports each service with another one.
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

/** The same reader created both, so their names are in the same order. */
function isSame(one: object, other: object): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
