import { assert } from "../../core/errors.js";
import { formatIpAddress, parseNetwork } from "../../policy/network.js";
import type { PriorityPolicy, ServicePolicy, TrustPolicy } from "../../policy/service-policy.js";
import { noted, type Tree, type TreeMap } from "../document.js";
import type { EnvoyContext } from "./context.js";
import { isAskedHere } from "./sides.js";
import { extension, typed } from "./values.js";

/**
 * The filters that remove priority headers which callers set and nobody trusts. They stand before
 * all others, and do nothing but for the virtual hosts of services (`priorityHeaderPerHost`). There
 * they act on every route, whether Headgate is asked, answers or is away: what it says of a request
 * would otherwise be all that keeps a caller from choosing a class.
 *
 * Source: envoy.extensions.filters.http.header_mutation.v3.HeaderMutation.
 */
export function priorityHeaderFilters(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): readonly Tree[] {
  const removed = services.filter((service) => isRemovedHere(service, context));
  const isAlways = removed.some(({ priority }) => !isAnyTrusted(priority.trust));
  const trusted = removed.filter(({ priority }) => isAnyTrusted(priority.trust));
  const headers = new Set(trusted.map(({ priority }) => priority.header));
  return [
    ...(isAlways ? [noted(`${filterWords}.`, extension(alwaysName, mutationType))] : []),
    ...[...headers].map((header) =>
      noted(`${filterWords}, unless the caller is trusted.`, conditionalFilter(header)),
    ),
  ];
}

/**
 * What turns such a filter on for the virtual host of a service, by the filter's name; empty where
 * the policy trusts everybody, or classes mean nothing.
 */
export function priorityHeaderPerHost(
  service: ServicePolicy,
  context: EnvoyContext,
): Readonly<Record<string, TreeMap>> {
  if (!isRemovedHere(service, context)) return {};
  const { header, trust } = service.priority;
  if (!isAnyTrusted(trust)) {
    return { [alwaysName]: typed(`${mutationType}PerRoute`, removal(header)) };
  }
  const matcher = { matcher_list: { matchers: [skipWhere(trustedCaller(trust))] } };
  return {
    [conditionalName(header)]: typed(`${matcherType}PerRoute`, { xds_matcher: matcher }),
  };
}

/** Whether classes mean something to any service, and this one does not take everybody's word. */
function isRemovedHere({ priority }: ServicePolicy, context: EnvoyContext): boolean {
  if (priority.trust.anyone || !isAskedHere(context)) return false;
  return context.policy.services.some(
    ({ admission, rateLimit, concurrency }) =>
      admission !== undefined ||
      rateLimit?.inExtProc === true ||
      (concurrency?.feedback.length ?? 0) > 0,
  );
}

function isAnyTrusted({ sources, principals }: TrustPolicy): boolean {
  return sources.length + principals.length > 0;
}

const filterWords = "First of all: on for virtual hosts that name the priority header to remove";

const mutationType = "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation";
const matcherType = "envoy.extensions.common.matching.v3.ExtensionWithMatcher";

/** Filters of other names may remove and set headers beside these. */
const alwaysName = "envoy.filters.http.header_mutation.priority";

function conditionalName(header: PriorityPolicy["header"]): string {
  return `envoy.filters.http.match_delegate.priority.${header}`;
}

function removal(header: string): TreeMap {
  return { mutations: { request_mutations: [{ remove: header }] } };
}

/** A virtual host can only replace the matcher, so that what is removed stands here. */
function conditionalFilter(header: string): TreeMap {
  return extension(conditionalName(header), matcherType, {
    extension_config: extension(alwaysName, mutationType, removal(header)),
    xds_matcher: { on_no_match: skipAction },
  });
}

const skipAction: TreeMap = {
  action: extension("skip", "envoy.extensions.filters.common.matcher.action.v3.SkipFilter"),
};

function skipWhere(predicate: TreeMap): TreeMap {
  return { predicate, on_match: skipAction };
}

/** Any that matches, as Headgate reads `source.address` and the first URI in the certificate. */
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

/** `*` alone is any name; Envoy takes no empty prefix. */
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
