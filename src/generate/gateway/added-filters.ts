import type { ServicePolicy } from "../../policy/service-policy.js";
import type { Tree } from "../document.js";
import { adaptiveConcurrencyFilter } from "../envoy/adaptive-concurrency.js";
import { admissionControlFilter } from "../envoy/admission-control.js";
import type { EnvoyContext } from "../envoy/context.js";
import { localRateLimitFilter } from "../envoy/local-rate-limit.js";
import { quotaFilters } from "../envoy/quota-filter.js";
import { memberOf } from "../tree-members.js";

/** Filters that Envoy Gateway has no kinds for, in the order in which requests meet them. */
export function addedFilters(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): readonly Tree[] {
  return [
    localRateLimitFilter(services, context),
    ...quotaFilters(services, context).map(({ filter }) => filter),
    adaptiveConcurrencyFilter(services, context),
    admissionControlFilter(services, context),
  ].filter((filter) => filter !== undefined);
}

/** What they are called, for routes that they are not to see. */
export function addedFilterNames(context: EnvoyContext): readonly string[] {
  const filters = addedFilters(context.policy.services, context);
  return filters.map((filter) => String(memberOf(filter, "name")));
}
