import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { noted, type Tree } from "../base/document.js";
import { memberOf, withMember } from "../base/tree-members.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { adaptiveConcurrencyFilter, reportSharedPins } from "../envoy/http/adaptive-concurrency.js";
import { admissionControlFilter } from "../envoy/http/admission-control.js";
import { localRateLimitFilter } from "../envoy/http/local-rate-limit.js";
import { quotaFilters } from "../envoy/http/quota-filter.js";

/**
 * Filters that Envoy Gateway has no kinds for, in the order in which requests meet them. A listener
 * may serve hosts of others as well: each filter is off, or does nothing, but for its services.
 */
export function addedFilters(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): readonly Tree[] {
  reportSharedPins(services, context);
  return [
    localRateLimitFilter(services, context),
    ...quotaFilters(services, context).map(({ filter }) => filter),
    ...protections.flatMap(({ filterOf }) => offAtFirst(filterOf(services, context))),
  ].filter((filter) => filter !== undefined);
}

/** What has one setting for all of its services. */
const protections = [
  {
    name: "envoy.filters.http.adaptive_concurrency",
    block: "adaptiveConcurrency",
    filterOf: adaptiveConcurrencyFilter,
  },
  {
    name: "envoy.filters.http.admission_control",
    block: "admissionControl",
    filterOf: admissionControlFilter,
  },
] as const;

function offAtFirst(filter: Tree | undefined): readonly Tree[] {
  if (filter === undefined) return [];
  return [withMember(filter, "disabled", noted("Enabled by virtual hosts.", true))];
}

/** What is on for the hosts of a service, and the block of the policy that asks for it. */
export function protectionsOf(
  service: ServicePolicy,
): readonly { readonly name: string; readonly block: string }[] {
  return protections.filter(({ block }) => service[block] !== undefined);
}

/** What they are called, for routes that they are not to see. */
export function addedFilterNames(context: EnvoyContext): readonly string[] {
  const filters = addedFilters(context.policy.services, context);
  return filters.map((filter) => String(memberOf(filter, "name")));
}
