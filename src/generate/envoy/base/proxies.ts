import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { GeneratedPolicy, GenerateOptions, TargetProblem } from "../../base/generator.js";
import type { EnvoyContext } from "./context.js";
import { isOutside } from "./sides.js";

/** One proxy that is generated. */
export interface ProxyPlan {
  /** Its folder: `edge`, `sidecar/orders`. */
  readonly folder: string;
  /** The service that a sidecar stands before; undefined: an edge proxy. */
  readonly own: ServicePolicy | undefined;
  readonly sides: readonly ProxySide[];
  /** For what the proxy is told as a whole: all of its services, none else. */
  readonly context: EnvoyContext;
}

/** One of its listeners. */
export interface ProxySide {
  readonly listener: "ingress" | "egress";
  readonly services: readonly ServicePolicy[];
  readonly context: EnvoyContext;
}

/** How proxies of ours name the clusters that lead to Headgate. */
const headgateClusterNames = {
  decisions: "headgate",
  control: "headgate_control",
  quotas: "headgate_control",
} as const;

/**
 * The proxies of a policy: one edge proxy before all services, and a sidecar before each, with a
 * second listener for the calls that it makes to services whose callers hold their limits.
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
