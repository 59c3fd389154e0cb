import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { GeneratedPolicy, GenerateOptions, TargetProblem } from "../../base/generator.js";
import type { EnvoyContext } from "./context.js";
import { isOutside } from "./sides.js";

/** A proxy to generate. */
export interface ProxyPlan {
  /** Its folder: `edge`, `sidecar/orders`. */
  readonly folder: string;
  /** The service next to a sidecar. Undefined for an edge proxy. */
  readonly own: ServicePolicy | undefined;
  readonly sides: readonly ProxySide[];
  /** Context of process-wide settings: contains only the services of this proxy. */
  readonly context: EnvoyContext;
}

/** A listener of a proxy. */
export interface ProxySide {
  readonly listener: "ingress" | "egress";
  readonly services: readonly ServicePolicy[];
  readonly context: EnvoyContext;
}

/** Names of the clusters that lead to Headgate, in our proxies. */
const headgateClusterNames = {
  decisions: "headgate",
  control: "headgate_control",
  quotas: "headgate_control",
} as const;

/**
 * Plans the proxies of a policy: one edge proxy in front of all services, and a sidecar for each. A
 * sidecar has a second listener, for calls to services whose limits are enforced by their callers.
 */
export function planProxies(
  policy: GeneratedPolicy,
  options: GenerateOptions,
  report: (problem: TargetProblem) => void,
): readonly ProxyPlan[] {
  const base = { options, headgateClusters: headgateClusterNames, report };
  const { services } = policy;
  const plans: ProxyPlan[] = [];
  if (options.roles.includes("edge")) {
    const context: EnvoyContext = { ...base, policy, role: "edge", side: "inbound" };
    const sides = [{ listener: "ingress", services, context }] as const;
    plans.push({ folder: "edge", own: undefined, sides, context });
  }
  if (!options.roles.includes("sidecar")) return plans;
  const inside = services.filter((service) => !isOutside(service));
  return [...plans, ...inside.map((own) => planSidecar(own, policy, base))];
}

function planSidecar(
  own: ServicePolicy,
  policy: GeneratedPolicy,
  base: Pick<EnvoyContext, "options" | "headgateClusters" | "report">,
): ProxyPlan {
  const called = policy.services.filter(
    (service) => service !== own && service.direction === "outbound",
  );
  const narrowed: GeneratedPolicy = { ...policy, services: [own, ...called] };
  const isWhole = base.options.form === "bootstrap" ? { isWhole: true as const } : {};
  const context: EnvoyContext = {
    ...base,
    ...isWhole,
    policy: narrowed,
    role: "sidecar",
    side: "inbound",
  };
  const ingress: ProxySide = { listener: "ingress", services: [own], context };
  const egress: ProxySide = {
    listener: "egress",
    services: called,
    context: { ...context, side: "outbound" },
  };
  const sides = called.length === 0 ? [ingress] : [ingress, egress];
  return { folder: `sidecar/${own.name}`, own, sides, context };
}
