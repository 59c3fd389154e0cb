import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { GeneratedPolicy } from "../base/generator.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { inboundCluster } from "./mesh-name.js";

/**
 * Reports breakers that Headgate cannot drive. The breaker at a service's own sidecar is named by
 * the container's port, which the policy must set, and which no other service may share.
 */
export function reportOwnClusters({ services }: GeneratedPolicy, context: EnvoyContext): void {
  const driven = services.filter(isDrivenInside);
  for (const service of driven) {
    const cluster = inboundCluster(service);
    const others = services.filter(
      (other) => other !== service && inboundCluster(other) === cluster,
    );
    if (cluster === undefined) reportUnknown(service, context);
    else if (others.length > 0) reportShared(service, { cluster, others, context });
  }
}

function isDrivenInside({ direction, concurrency }: ServicePolicy): boolean {
  return direction === "inbound" && concurrency?.feedback.includes("circuitBreakers") === true;
}

function reportUnknown({ name }: ServicePolicy, { report }: EnvoyContext): void {
  report({
    id: "HG345",
    spot: { service: name, path: ["clusters"] },
    message:
      "Headgate cannot drive the breaker of the service's sidecar, because the " +
      "name of its cluster contains the container port",
    hint:
      'add clusters: ["inbound|8080||"], with that port, or set direction: ' +
      "outbound to drive the sidecars of callers",
  });
}

function reportShared(
  { name }: ServicePolicy,
  {
    cluster,
    others,
    context,
  }: {
    readonly cluster: string;
    readonly others: readonly ServicePolicy[];
    readonly context: EnvoyContext;
  },
): void {
  const names = others.map((other) => other.name).join(", ");
  context.report({
    id: "HG346",
    spot: { service: name, path: ["clusters"] },
    message:
      `the sidecars of ${names} also have a cluster ${cluster}, so Headgate cannot ` +
      "tell them apart",
    hint: "give the containers different ports, or set direction: outbound",
  });
}
