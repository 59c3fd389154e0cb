import { assert, assertNever } from "../../../core/base/errors.js";
import type { DescriptorPart, TextMatch } from "../../../policy/services/descriptor-parts.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type {
  DescriptorHits,
  ServiceDescriptor,
  ServiceRateLimit,
} from "../../../policy/services/service-rate-limit.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { type EnvoyFeature, hasFeature, reportOld } from "../base/envoy-features.js";
import { typed } from "../base/values.js";

/** Returns the descriptors that Envoy's rate-limit filter sends. Empty if ext_proc sends them. */
export function filterDescriptors(
  rateLimit: ServiceRateLimit | undefined,
): readonly ServiceDescriptor[] {
  return rateLimit === undefined || rateLimit.inExtProc ? [] : rateLimit.descriptors;
}

/**
 * Returns entries of `rate_limits`. Each makes a descriptor, or none if a part is missing.
 *
 * Source: envoy.config.route.v3.RateLimit.
 */
export function rateLimitEntries(
  { name, rateLimit }: Pick<ServicePolicy, "name" | "rateLimit">,
  context: EnvoyContext,
): readonly Tree[] {
  return filterDescriptors(rateLimit).map((descriptor) => {
    const at: DescriptorPlace = {
      context,
      service: name,
      path: ["rateLimit", "descriptors", String(rateLimit?.descriptors.indexOf(descriptor))],
    };
    return entryOf(descriptor, at);
  });
}

/** A descriptor's place in the policy, and where its problems are reported. */
interface DescriptorPlace {
  readonly context: EnvoyContext;
  readonly service: string;
  readonly path: readonly string[];
}

function entryOf(descriptor: ServiceDescriptor, at: DescriptorPlace): Tree {
  const { parts, when } = descriptor;
  const entry: TreeMap = {
    actions: parts.map((part) => actionOf(part, at)),
    hits_addend: hitsOf(descriptor, at),
    apply_on_stream_done: when === "streamDone" ? true : undefined,
  };
  if (when === "streamDone") {
    needs(at, "hitsOnStreamDone", "a descriptor that is charged after the response");
  }
  return noted(commentOf(descriptor), entry);
}

/** Formats a descriptor as limits name it: `(user, path = /reports)`. */
function commentOf({ parts, when, isRefund }: ServiceDescriptor): string {
  const names = parts.map((part) => ("value" in part ? `${part.key} = ${part.value}` : part.key));
  const refund = isRefund ? ", refunded" : "";
  const time = when === "streamDone" ? ", charged after the response" : "";
  return `(${names.join(", ")})${refund}${time}`;
}

/** One hit is the default. In `rate_limits` of a virtual host, costs would be ignored. */
function hitsOf({ hits, isRefund }: ServiceDescriptor, at: DescriptorPlace): Tree | undefined {
  if (isDefault(hits) && !isRefund) return undefined;
  needs(at, "hitsPerDescriptor", "a descriptor with its own cost");
  if (isRefund) needs(at, "refunds", "a descriptor that refunds its hits");
  return {
    ...(hits.kind === "fixed" ? { number: hits.count } : { format: hits.format }),
    is_negative_hits: isRefund ? true : undefined,
  };
}

function isDefault(hits: DescriptorHits): boolean {
  return hits.kind === "fixed" && hits.count === 1;
}

function needs(at: DescriptorPlace, feature: EnvoyFeature, what: string): void {
  const { context, service, path } = at;
  if (hasFeature(context, feature)) return;
  reportOld(context, { service, path, feature, what, instead: "leave the descriptor out" });
}

/** Keys that Envoy gives these entries, which cannot be changed. */
const fixedKeys = {
  remoteAddress: "remote_address",
  sourceCluster: "source_cluster",
  destinationCluster: "destination_cluster",
  maskedAddress: "masked_remote_address",
} as const;

function actionOf(part: DescriptorPart, at: DescriptorPlace): Tree {
  switch (part.kind) {
    case "remoteAddress":
    case "sourceCluster":
    case "destinationCluster":
      return fixedKeyAction(part);
    case "maskedAddress":
      return fixedKeyAction(part, {
        v4_prefix_mask_len: part.v4PrefixBits,
        v6_prefix_mask_len: part.v6PrefixBits,
      });
    case "header":
      return { request_headers: { header_name: part.header, descriptor_key: part.key } };
    case "query":
      needs(at, "queryParameters", "a descriptor from a query parameter");
      return {
        query_parameters: { query_parameter_name: part.parameter, descriptor_key: part.key },
      };
    case "fixed":
      return { generic_key: { descriptor_key: part.key, descriptor_value: part.value } };
    case "headerMatch":
      return { header_value_match: { ...matchOf(part), headers: part.matches.map(matcherOf) } };
    case "queryMatch":
      return {
        query_parameter_value_match: {
          ...matchOf(part),
          query_parameters: part.matches.map(matcherOf),
        },
      };
    case "metadata":
      return { metadata: metadataOf(part) };
    case "expression":
      return { extension: expressionOf(part) };
    default:
      return assertNever(part);
  }
}

function fixedKeyAction(
  { kind, key }: { readonly kind: keyof typeof fixedKeys; readonly key: string },
  fields: TreeMap = {},
): TreeMap {
  assert(key === fixedKeys[kind], "a policy knows no other name for what Envoy names itself");
  return { [key]: fields };
}

type MatchPart = Extract<DescriptorPart, { readonly kind: "headerMatch" | "queryMatch" }>;

/** Envoy expects a match by default. */
function matchOf({ key, value, isMatch }: MatchPart): TreeMap {
  return {
    descriptor_key: key,
    descriptor_value: value,
    expect_match: isMatch ? undefined : false,
  };
}

/** Source: envoy.config.route.v3.HeaderMatcher and QueryParameterMatcher, which are alike here. */
function matcherOf({ name, test, text }: TextMatch): TreeMap {
  if (test === "present") return { name, present_match: true };
  return {
    name,
    string_match: test === "regex" ? { safe_regex: { regex: text } } : { [test]: text },
  };
}

function metadataOf(part: Extract<DescriptorPart, { readonly kind: "metadata" }>): TreeMap {
  return {
    descriptor_key: part.key,
    metadata_key: { key: part.namespace, path: part.path.map((key) => ({ key })) },
    default_value: part.fallback,
    source: part.from === "dynamic" ? "DYNAMIC" : "ROUTE_ENTRY",
  };
}

/** If it cannot be evaluated, the descriptor is left out, as with a missing header. */
function expressionOf(part: Extract<DescriptorPart, { readonly kind: "expression" }>): TreeMap {
  return {
    name: "envoy.rate_limit_descriptors.expr",
    typed_config: typed("envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor", {
      descriptor_key: part.key,
      text: part.cel,
    }),
  };
}
