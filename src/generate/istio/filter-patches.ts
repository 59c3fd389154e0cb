import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { noted, type Tree } from "../base/document.js";
import { memberOf, withMember } from "../base/tree-members.js";
import { reportSharedPins } from "../envoy/http/adaptive-concurrency.js";
import { askingFilters, learningFilters, type NamedFilter } from "../envoy/http/http-filters.js";
import { escapedSlashesWords, headerBounds } from "../envoy/http/listener.js";
import { localReplies } from "../envoy/http/local-replies.js";
import { priorityHeaderFilters } from "../envoy/http/priority-header.js";
import { usageFilterName } from "../envoy/http/usage.js";
import { connectionPatch, firstFilterPatches, httpFilterPatch } from "./envoy-filter.js";
import { meshName } from "./mesh-name.js";
import { type IstioPlace, virtualHostsAt } from "./place.js";
import { skippingFilter } from "./skipping-filter.js";

/**
 * Names of the filters that a service's requests pass at a place, without the router. `own` are
 * filters that skip requests of other services.
 */
export interface FilterNames {
  readonly shared: readonly string[];
  readonly own: readonly string[];
}

/** Returns the names of the filters that a service's requests pass at a place. */
export function filterNamesAt(service: ServicePolicy, place: IstioPlace): FilterNames {
  const namesOf = (filters: readonly NamedFilter[]): readonly string[] =>
    filters.map(({ name }) => name);
  const services =
    place.context === "SIDECAR_OUTBOUND"
      ? servicesOnPort(meshName(service)?.port, place)
      : place.services;
  return {
    shared: namesOf(sharedFilters(services, place)),
    own: namesOf(ownFilters(service, place)),
  };
}

/** In callers' sidecars, each port has its own listener. */
function servicesOnPort(
  port: number | undefined,
  { services }: IstioPlace,
): readonly ServicePolicy[] {
  return services.filter((service) => meshName(service)?.port === port);
}

function sharedFilters(
  services: readonly ServicePolicy[],
  place: IstioPlace,
): readonly NamedFilter[] {
  const asking = askingFilters(services, place.envoy);
  return hasStrangers(place) ? asking : [...asking, ...learningFilters(services, place.envoy)];
}

/**
 * Filters that learn from all responses, at places with responses of unknown hosts. Each service
 * has its own filter, which skips all requests except those of the service's virtual hosts.
 */
function ownFilters(service: ServicePolicy, place: IstioPlace): readonly NamedFilter[] {
  if (!hasStrangers(place)) return [];
  return learningFilters([service], place.envoy).map(({ name, filter }) => {
    const ownName = `${name}.${service.name}`;
    return { name: ownName, filter: skippingFilter(ownName, filter) };
  });
}

/** Reports whether listeners of a place serve hosts that the policy does not know. */
function hasStrangers({ context }: IstioPlace): boolean {
  return context !== "SIDECAR_INBOUND";
}

/** Returns a place's filters before the router, in the order in which requests pass them. */
export function filterPatches(place: IstioPlace): readonly Tree[] {
  const { context, services, envoy } = place;
  reportSharedPins(services, envoy);
  if (context !== "SIDECAR_OUTBOUND") {
    return [
      ...firstFilterPatches(place, priorityHeaderFilters(services, envoy)),
      ...filtersOf(services, place).map((filter) => httpFilterPatch(place, filter)),
    ];
  }
  const ports = new Set(services.map((service) => meshName(service)?.port));
  return [...ports].flatMap((port) => {
    if (port === undefined) return [];
    const filters = filtersOf(servicesOnPort(port, place), place);
    return filters.map((filter) => httpFilterPatch({ context, port }, filter));
  });
}

function filtersOf(services: readonly ServicePolicy[], place: IstioPlace): readonly Tree[] {
  const reached = services.filter((service) => virtualHostsAt(service, place).length > 0);
  return [
    ...sharedFilters(services, place).map(({ filter }) => offByDefault(filter, place)),
    ...reached.flatMap((service) => ownFilters(service, place).map(({ filter }) => filter)),
  ];
}

/**
 * At a gateway there are virtual hosts that are not in the policy, and Headgate must not be called
 * for them. The settings of a virtual host enable the filter.
 */
function offByDefault(filter: Tree, { context }: IstioPlace): Tree {
  const name = memberOf(filter, "name");
  const isAsking = name === "envoy.filters.http.ext_proc" || name === usageFilterName;
  if (context !== "GATEWAY" || !isAsking) return filter;
  return withMember(filter, "disabled", noted("Enabled by virtual hosts below.", true));
}

/** Settings of a place's HTTP connection managers that Istio does not set. */
export function connectionPatches(place: IstioPlace): readonly Tree[] {
  const { context, envoy } = place;
  const { listener } = envoy.policy.proxies;
  const { concurrentStreamsMax, trustedHops, escapedSlashes } = listener;
  const isEdge = context === "GATEWAY";
  const streams = { max_concurrent_streams: concurrentStreamsMax };
  return [
    connectionPatch(place, {
      http2_protocol_options: context === "SIDECAR_OUTBOUND" ? undefined : streams,
      ...(context === "SIDECAR_OUTBOUND" ? {} : headerBounds(listener)),
      xff_num_trusted_hops: isEdge && trustedHops > 0 ? trustedHops : undefined,
      path_with_escaped_slashes_action:
        isEdge && escapedSlashes !== undefined ? escapedSlashesWords[escapedSlashes] : undefined,
      local_reply_config: noted(
        "Every response of this proxy that sheds load carries retry-after.",
        localReplies(envoy),
      ),
    }),
  ];
}
