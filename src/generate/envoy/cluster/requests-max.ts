import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { Tree } from "../../base/document.js";
import { asMap, itemsOf, memberOf } from "../../base/tree-members.js";
import type { EnvoyContext } from "../base/context.js";
import { circuitBreakersTree } from "./circuit-breakers.js";

/** Maximum number of concurrent requests, with its comment. */
export function requestsMaxOf(service: ServicePolicy, context: EnvoyContext): Tree | undefined {
  return thresholdOf(service, context, "DEFAULT")["max_requests"];
}

/** The breaker of critical requests, which the objects of other targets cannot express. */
export function criticalThreshold(service: ServicePolicy, context: EnvoyContext): Tree {
  return thresholdOf(service, context, "HIGH");
}

function thresholdOf(service: ServicePolicy, context: EnvoyContext, priority: "DEFAULT" | "HIGH") {
  const thresholds = itemsOf(circuitBreakersTree(service, context)["thresholds"]);
  return asMap(thresholds.find((one) => memberOf(one, "priority") === priority)) ?? {};
}
