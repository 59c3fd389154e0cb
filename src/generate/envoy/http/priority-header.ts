import { assert } from "../../../core/base/errors.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { TrustPolicy } from "../../../policy/services/service-priority.js";
import { formatIpAddress, parseNetwork } from "../../../policy/text/network.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { GeneratedPolicy } from "../../base/generator.js";
import type { EnvoyContext } from "../base/context.js";
import { isAskedHere } from "../base/sides.js";
import { extension, typed } from "../base/values.js";

/** Prefix of the names of these filters. */
export const priorityFilterName = "envoy.filters.http.header_mutation.priority";

/**
 * Returns the filters that remove priority headers of untrusted callers: one for each `trust` of
 * these services. They precede all other filters, and a virtual host sets what they remove
 * (`priorityHeaderPerHost`). So the header is removed on every route, whether or not Headgate is
 * called and answers, and hosts that are not in the policy are not affected.
 *
 * Source: envoy.extensions.filters.http.header_mutation.v3.HeaderMutation.
 */
export function priorityHeaderFilters(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): readonly Tree[] {
  const removed = services.filter((service) => isRemovedHere(service, context));
  const trustOfName = new Map(
    removed.map((service) => [filterName(service, context), service.priority.trust]),
  );
  return Array.from(trustOfName, ([name, trust]) =>
    isAnyTrusted(trust)
      ? noted(`${filterWords}, unless the caller is trusted.`, conditionalFilter(name, trust))
      : noted(`${filterWords}.`, extension(name, mutationType)),
  );
}

const filterWords = "First filter: removes the priority header that a virtual host names";

/**
 * Returns the settings of such a filter for a service's virtual host, by the filter's name. Empty
 * if the policy trusts every caller, or if classes have no effect.
 */
export function priorityHeaderPerHost(
  service: ServicePolicy,
  context: EnvoyContext,
): Readonly<Record<string, TreeMap>> {
  if (!isRemovedHere(service, context)) return {};
  const mutations = { request_mutations: [{ remove: service.priority.header }] };
  return { [filterName(service, context)]: typed(`${mutationType}PerRoute`, { mutations }) };
}

const mutationType = "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation";

/**
 * Reports whether classes have an effect here, and the policy does not trust every caller. A mesh's
 * gateway does not call Headgate if sidecars do, but these may trust its certificate, so it must
 * not pass on priorities of untrusted callers.
 */
function isRemovedHere({ priority, hosts }: ServicePolicy, context: EnvoyContext): boolean {
  const isGateway = context.isMeshGateway === true && hosts.length > 0;
  const isHere = isAskedHere(context) || isGateway;
  return !priority.trust.anyone && isHere && knowsPriorities(context.policy);
}

/** Reports whether any service treats requests by class. Then all remove untrusted priorities. */
export function knowsPriorities({ services }: Pick<GeneratedPolicy, "services">): boolean {
  return services.some(
    ({ admission, rateLimit, concurrency }) =>
      admission !== undefined ||
      rateLimit?.inExtProc === true ||
      (concurrency?.feedback.length ?? 0) > 0,
  );
}

function isAnyTrusted({ sources, principals }: TrustPolicy): boolean {
  return sources.length + principals.length > 0;
}

/** Other filters may remove headers too. Services that trust the same callers share a filter. */
function filterName({ priority }: ServicePolicy, { policy }: EnvoyContext): string {
  const own = priorityFilterName;
  if (!isAnyTrusted(priority.trust)) return own;
  const text = JSON.stringify(priority.trust);
  const first = policy.services.find((one) => JSON.stringify(one.priority.trust) === text);
  return `${own}.${first?.name}`;
}

/**
 * Returns a filter that skips requests of trusted callers. The filter has the matcher itself: a
 * virtual host's (ExtensionWithMatcherPerRoute) may only match headers, or it disables the filter.
 */
function conditionalFilter(name: string, trust: TrustPolicy): TreeMap {
  const skip = extension("skip", "envoy.extensions.filters.common.matcher.action.v3.SkipFilter");
  const trusted = { predicate: trustedCaller(trust), on_match: { action: skip } };
  return extension(name, "envoy.extensions.common.matching.v3.ExtensionWithMatcher", {
    extension_config: extension("envoy.filters.http.header_mutation", mutationType),
    xds_matcher: { matcher_list: { matchers: [trusted] } },
  });
}

/** Matches any of them, as Headgate reads `source.address` and the certificate's first URI. */
function trustedCaller({ sources, principals }: TrustPolicy): TreeMap {
  const predicates = [
    ...(sources.length === 0 ? [] : [sourceIn(sources)]),
    ...principals.map(principalIs),
  ];
  const [first, ...others] = predicates;
  return first !== undefined && others.length === 0
    ? first
    : { or_matcher: { predicate: predicates } };
}

function sourceIn(sources: readonly string[]): TreeMap {
  const network = "envoy.extensions.matching.common_inputs.network.v3.SourceIPInput";
  const matcher = "envoy.extensions.matching.input_matchers.ip.v3.Ip";
  return {
    single_predicate: {
      input: extension("source_ip", network),
      custom_match: extension("trusted_networks", matcher, {
        cidr_ranges: sources.map(cidrRange),
        stat_prefix: "priority_trust",
      }),
    },
  };
}

function principalIs(principal: string): TreeMap {
  const input = "envoy.extensions.matching.common_inputs.ssl.v3.UriSanInput";
  return {
    single_predicate: {
      input: extension("uri_san", input),
      value_match: principalMatch(principal),
    },
  };
}

/** `*` alone matches any name. Envoy does not accept an empty prefix. */
function principalMatch(principal: string): TreeMap {
  if (principal === "*") return { safe_regex: { regex: ".+" } };
  return principal.endsWith("*") ? { prefix: principal.slice(0, -1) } : { exact: principal };
}

/** Source: envoy.config.core.v3.CidrRange. */
function cidrRange(source: string): TreeMap {
  const network = parseNetwork(source);
  assert(network !== undefined, "a network was checked where it was read");
  const { address, prefixBits } = network;
  return { address_prefix: formatIpAddress(address), prefix_len: prefixBits };
}
