import { addressAttribute, routeAttribute } from "./cel/request-facts.js";
import type { PriorityClassifier } from "./services/priority-classifier.js";
import type { KeyedPermits } from "./services/service-admission.js";
import type { ServicePolicy } from "./services/service-policy.js";

/** Names of what has to be seen of requests to decide on them. */
export interface RequestNeeds {
  /** In lower case. */
  readonly headers: Set<string>;
  /** As Envoy calls them. */
  readonly attributes: Set<string>;
}

/** Adds what a service's policy looks at; what every service needs is no part of it. */
export function addRequestNeeds(
  service: ServicePolicy,
  classifier: PriorityClassifier,
  { headers, attributes }: RequestNeeds,
): void {
  for (const name of classifier.headerNames) headers.add(name);
  for (const name of classifier.attributeNames) attributes.add(name);
  for (const key of keysOf(service)) {
    if (key.kind === "header") headers.add(key.header);
    else attributes.add(key.kind === "route" ? routeAttribute : addressAttribute);
  }
  const deadlineHeader = service.admission?.deadline?.header;
  if (deadlineHeader !== undefined) headers.add(deadlineHeader);
  const splitBy = service.concurrency?.per?.header;
  if (splitBy !== undefined) headers.add(splitBy);
}

/** By what requests of a service are told apart. */
function keysOf({ admission, rateLimit }: ServicePolicy): readonly KeyedPermits["per"][] {
  const keys: KeyedPermits["per"][] = [];
  if (admission !== undefined) keys.push(admission.caller);
  if (admission?.maxInFlightPer !== undefined) keys.push(admission.maxInFlightPer.per);
  if (rateLimit?.inExtProc !== true) return keys;
  for (const part of rateLimit.descriptors.flatMap(({ parts }) => parts)) {
    if (part.kind === "header" || part.kind === "remoteAddress") keys.push(part);
  }
  return keys;
}
