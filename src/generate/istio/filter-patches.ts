import type { ServicePolicy } from "../../policy/service-policy.js";
import { noted, type Tree } from "../document.js";
import { type FilterChain, httpFilters } from "../envoy/http-filters.js";
import { escapedSlashesWords, headerBounds } from "../envoy/listener.js";
import { localReplies } from "../envoy/local-replies.js";
import { priorityHeaderFilters } from "../envoy/priority-header.js";
import { memberOf, withMember } from "../tree-members.js";
import { connectionPatch, firstFilterPatches, httpFilterPatch } from "./envoy-filter.js";
import { meshName } from "./mesh-name.js";
import type { Place } from "./place.js";

/** The filters that a service's requests meet at a place; the router is not among them. */
export function chainAt(service: ServicePolicy, place: Place): FilterChain {
  return place.context === "SIDECAR_OUTBOUND"
    ? chainOf(servicesOnPort(meshName(service)?.port, place), place)
    : chainOf(place.services, place);
}

/**
 * In callers' sidecars a listener is of a port, and all services on it share the filters that have
 * no settings by route.
 */
function servicesOnPort(port: number | undefined, { services }: Place): readonly ServicePolicy[] {
  return services.filter((service) => meshName(service)?.port === port);
}

function chainOf(services: readonly ServicePolicy[], { envoy }: Place): FilterChain {
  const { filters, names } = httpFilters(services, envoy);
  return { filters: filters.slice(0, names.length), names };
}

/** The filters of a place, before the router, in the order in which requests meet them. */
export function filterPatches(place: Place): readonly Tree[] {
  const { context, services, envoy } = place;
  if (context !== "SIDECAR_OUTBOUND") {
    const { filters } = chainOf(services, place);
    return [
      ...firstFilterPatches(place, priorityHeaderFilters(services, envoy)),
      ...filters.map((filter) => {
        return httpFilterPatch(place, offByDefault(filter, place));
      }),
    ];
  }
  const ports = new Set(services.map((service) => meshName(service)?.port));
  return [...ports].flatMap((port) => {
    if (port === undefined) return [];
    const { filters } = chainOf(servicesOnPort(port, place), place);
    const shared = `Callers have one listener for port ${port}: others on it are meant, too.`;
    return filters.map((filter) => noted(shared, httpFilterPatch({ context, port }, filter)));
  });
}

/**
 * At a gateway there are virtual hosts that no policy speaks of: theirs is not to be asked about.
 * What a virtual host says to the filter turns it on.
 */
function offByDefault(filter: Tree, { context }: Place): Tree {
  const isAsking = memberOf(filter, "name") === "envoy.filters.http.ext_proc";
  if (context !== "GATEWAY" || !isAsking) return filter;
  return withMember(filter, "disabled", noted("On where a virtual host below says so.", true));
}

/** What the HTTP connection managers of a place have that Istio does not set. */
export function connectionPatches(place: Place): readonly Tree[] {
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
        "Every answer with which this proxy sheds load says when to come back.",
        localReplies(envoy),
      ),
    }),
  ];
}
