import { pathHeader, type RequestFacts } from "../../policy/cel/request-facts.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import { descriptorText } from "../../policy/services/callers.js";
import type { DescriptorPart, TextMatch } from "../../policy/services/descriptor-parts.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { ServiceDescriptor } from "../../policy/services/service-rate-limit.js";
import { type IpAddress, parseSourceAddress } from "../../policy/text/network.js";
import type { DescriptorQuery, RateLimitQuery } from "../rate-limit/query.js";

/** A descriptor of a service that is omitted for a request, and why. */
export interface LeftOutDescriptor {
  /** Its index in the policy's list, from 0. */
  readonly index: number;
  /** The key of the part that caused the omission. */
  readonly key: string;
  /** `absent`: Envoy omits it. `unknown`: only Envoy knows the value of the part. */
  readonly why: "absent" | "unknown" | "streamDone";
}

/** The query that Envoy would send for a request, as far as it is known without Envoy. */
export interface ServiceQuery {
  /** Undefined if no descriptor is left. */
  readonly query: RateLimitQuery | undefined;
  readonly leftOut: readonly LeftOutDescriptor[];
}

/** Applies the actions of a service to a request. Undefined if it has no rate limits. */
export function serviceQuery(
  { name, rateLimit }: Pick<ServicePolicy, "name" | "rateLimit">,
  facts: RequestFacts,
): ServiceQuery | undefined {
  if (rateLimit === undefined) return undefined;
  const asked: DescriptorQuery[] = [];
  const leftOut: LeftOutDescriptor[] = [];
  rateLimit.descriptors.forEach((descriptor, index) => {
    const made = makeDescriptor(descriptor, { cluster: name, facts });
    if ("why" in made) leftOut.push({ index, ...made });
    else asked.push(made);
  });
  if (asked.length === 0) return { query: undefined, leftOut };
  const query = { domain: rateLimit.domain, descriptors: asked };
  return { query: rateLimit.inExtProc ? { ...query, canDelay: true } : query, leftOut };
}

/**
 * Returns the quota bucket of a request, as the descriptor that it represents. The quota's CEL
 * condition and regular expressions are left to Envoy.
 *
 * @param service the service that the request goes to
 * @returns undefined if the quota does not apply to the request
 */
export function bucketQuery(
  quota: Pick<QuotaPolicy, "domain" | "services" | "match" | "bucket">,
  service: string,
  facts: RequestFacts,
): RateLimitQuery | undefined {
  const { domain, services, match, bucket } = quota;
  if (services !== undefined && !services.includes(service)) return undefined;
  const isMet = (one: TextMatch): boolean =>
    one.test === "regex" || testText(one, facts.headers.get(one.name));
  if (!match.every(isMet)) return undefined;
  const entries: { readonly key: string; readonly value: string }[] = [];
  for (const part of bucket) {
    const own = partValue(part, { cluster: service, facts });
    // Unlike the rate limit filter, the quota filter makes no entry for an empty text.
    const value = own === undefined || own === "" ? part.fallback : own;
    if (value === undefined || value === unknown) return undefined;
    entries.push({ key: part.key, value });
  }
  return { domain, descriptors: [{ entries, hits: 1, isRefund: false }] };
}

interface Surroundings {
  readonly cluster: string;
  readonly facts: RequestFacts;
}

function makeDescriptor(
  { parts, hits, isRefund, when }: ServiceDescriptor,
  surroundings: Surroundings,
): DescriptorQuery | Omit<LeftOutDescriptor, "index"> {
  const [first] = parts;
  if (when === "streamDone") return { key: first?.key ?? "", why: "streamDone" };
  const entries: { readonly key: string; readonly value: string }[] = [];
  for (const part of parts) {
    const value = partValue(part, surroundings);
    if (value === unknown) return { key: part.key, why: "unknown" };
    if (value === undefined) return { key: part.key, why: "absent" };
    entries.push({ key: part.key, value });
  }
  return { entries, hits: hits.kind === "fixed" ? hits.count : 1, isRefund };
}

const unknown = Symbol("only Envoy can tell");

/** Undefined if the request has no such part. */
function partValue(
  part: DescriptorPart,
  { cluster, facts }: Surroundings,
): string | typeof unknown | undefined {
  switch (part.kind) {
    case "fixed":
    case "header":
      return descriptorText(part, facts);
    case "remoteAddress":
      return addressText(descriptorText(part, facts));
    case "maskedAddress":
      return maskedAddress(descriptorText({ ...part, kind: "remoteAddress" }, facts), part);
    case "query":
      return queryOf(facts).get(part.parameter) ?? undefined;
    case "destinationCluster":
      return cluster;
    case "headerMatch":
      return matched(part, (name) => facts.headers.get(name));
    case "queryMatch": {
      const query = queryOf(facts);
      return matched(part, (name) => query.get(name) ?? undefined);
    }
    case "metadata":
      return part.fallback ?? unknown;
    case "sourceCluster":
    case "expression":
      return unknown;
  }
}

/** For Envoy, a `+` is not a space, and only the first `?` begins a query. */
function queryOf({ headers }: RequestFacts): URLSearchParams {
  const path = headers.get(pathHeader) ?? "";
  const mark = path.indexOf("?");
  const query = mark === -1 ? "" : path.slice(mark + 1).replaceAll("+", "%2B");
  return new URLSearchParams(`&${query}`);
}

/** Source: envoy.config.route.v3.RateLimit.Action.HeaderValueMatch, expect_match. */
function matched(
  part: Extract<DescriptorPart, { readonly matches: readonly TextMatch[] }>,
  read: (name: string) => string | undefined,
): string | typeof unknown | undefined {
  let isMatch = true;
  for (const match of part.matches) {
    // RE2 and JavaScript differ in the patterns they support and in the time they take.
    if (match.test === "regex") return unknown;
    if (!testText(match, read(match.name))) isMatch = false;
  }
  return isMatch === part.isMatch ? part.value : undefined;
}

function testText({ test, text }: TextMatch, value: string | undefined): boolean {
  if (value === undefined) return false;
  switch (test) {
    case "present":
      return true;
    case "exact":
      return value === text;
    case "prefix":
      return value.startsWith(text);
    case "suffix":
      return value.endsWith(text);
    case "contains":
      return value.includes(text);
    case "regex":
      return false;
  }
}

/** An address as Envoy writes it. One that only Envoy can parse (with a zone) is unchanged. */
function addressText(text: string | undefined): string | undefined {
  const address = text === undefined ? undefined : parseSourceAddress(text);
  return address?.length === 16 ? version6Text(address) : text;
}

/**
 * Returns an address with the bits after the prefix cleared, as Envoy writes it: `10.0.0.0/8`.
 *
 * Source: envoy.config.route.v3.RateLimit.Action.MaskedRemoteAddress.
 */
function maskedAddress(
  text: string | undefined,
  prefix: { readonly v4PrefixBits: number; readonly v6PrefixBits: number },
): string | undefined {
  const address = text === undefined ? undefined : parseSourceAddress(text);
  if (address === undefined) return undefined;
  const bits = address.length === 4 ? prefix.v4PrefixBits : prefix.v6PrefixBits;
  const masked = address.map(
    (byte, i) => byte & (0xff00 >> Math.max(0, Math.min(8, bits - i * 8))),
  );
  return `${masked.length === 4 ? masked.join(".") : version6Text(masked)}/${bits}`;
}

/** Source: RFC 5952 section 4.2: the longest run of at least two zero groups is `::`. */
function version6Text(bytes: IpAddress): string {
  const groups = Array.from({ length: 8 }, (_, i) =>
    (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16),
  );
  let best = { start: -1, length: 1 };
  for (let start = 0; start < groups.length; start += 1) {
    let length = 0;
    while (groups[start + length] === "0") length += 1;
    if (length > best.length) best = { start, length };
  }
  if (best.start === -1) return groups.join(":");
  const head = groups.slice(0, best.start).join(":");
  const tail = groups.slice(best.start + best.length).join(":");
  return `${head}::${tail}`;
}
