import {
  denialOf,
  isPattern,
  isSettled,
  type Limit,
  type PathStep,
  type Rule,
} from "../../core/limits/limit.js";
import type { DescriptorPart } from "../../policy/services/descriptor-parts.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { ServiceDescriptor } from "../../policy/services/service-rate-limit.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { hasGatewayFeature, type OldGateway, reportOldGateway } from "./gateway-version.js";

/**
 * Returns a service's limits for Envoy Gateway, which translates them into a policy of its own and
 * sends that to the Headgate that replaces its rate-limit service.
 *
 * Source: Envoy Gateway, BackendTrafficPolicy, rateLimit.global.
 */
export function globalRateLimit(
  service: ServicePolicy,
  context: EnvoyContext,
): TreeMap | undefined {
  const { rateLimit } = service;
  if (rateLimit === undefined || rateLimit.inExtProc) return undefined;
  const ofDomain = context.policy.rules.filter(({ domain }) => domain === rateLimit.domain);
  const rules = askedLimits(rateLimit.descriptors).flatMap((asked) => {
    const place: AskedPlace = { service, context, asked };
    return ofDomain
      .filter((rule) => meets(rule, asked.parts))
      .flatMap((rule) => rulesOf(rule, ofDomain, place));
  });
  if (rules.length === 0) return undefined;
  return { type: "Global", global: { rules } };
}

/**
 * Descriptors with the same parts: one Envoy Gateway rule sets the cost of a request on arrival,
 * and its cost after the response.
 */
interface AskedLimit {
  readonly parts: readonly DescriptorPart[];
  /** Index of the first of them. */
  readonly index: number;
  readonly request?: ServiceDescriptor;
  readonly streamDone?: ServiceDescriptor;
  /** Whether two of them are charged at the same time. */
  readonly isTwice: boolean;
}

function askedLimits(descriptors: readonly ServiceDescriptor[]): readonly AskedLimit[] {
  const asked = new Map<string, AskedLimit>();
  for (const [index, descriptor] of descriptors.entries()) {
    const { parts, when } = descriptor;
    const key = JSON.stringify(parts);
    const known = asked.get(key) ?? { parts, index, isTwice: false };
    const isTwice = known.isTwice || known[when] !== undefined;
    asked.set(key, { ...known, [when]: descriptor, isTwice });
  }
  return [...asked.values()];
}

interface AskedPlace {
  readonly service: ServicePolicy;
  readonly context: EnvoyContext;
  readonly asked: AskedLimit;
}

/** Reports whether a descriptor with these parts can match a rule that limits. */
function meets({ path, effect }: Rule, parts: readonly DescriptorPart[]): boolean {
  if (effect.kind === "none" || path.length !== parts.length) return false;
  return parts.every((part, at) => {
    const step = path[at];
    if (step === undefined || (step.key !== part.key && !step.key.includes("*"))) return false;
    return part.kind !== "fixed" || step.value === undefined || isPattern(step)
      ? true
      : step.value === part.value;
  });
}

function rulesOf(rule: Rule, others: readonly Rule[], place: AskedPlace): readonly Tree[] {
  const refusal = refusalOf(rule, others, place.asked);
  if (refusal !== undefined || rule.effect.kind !== "limited") {
    if (refusal !== undefined) reportRefusal(refusal, place);
    return [];
  }
  const selector = selectorOf(rule.path, place);
  if (selector === undefined) return [];
  const isAll = Object.values(selector).every((one) => one === undefined);
  return rule.effect.limits.map((limit) =>
    noted(`${rule.label}.`, {
      clientSelectors: isAll ? undefined : [selector],
      limit: { requests: limit.hits, unit: unitOf(limit, place) },
      cost: costOf(place),
      shadowMode: denialOf(limit.role) === "shadow" ? shadowMode(place) : undefined,
    }),
  );
}

/** Why Envoy Gateway cannot express a limit, and the nearest alternative. */
interface Refusal {
  readonly why: string;
  readonly instead: string;
  /** Whether ext_proc could express it. Default true. */
  readonly isForExtProc?: boolean;
}

function refusalOf(
  { path, effect }: Rule,
  others: readonly Rule[],
  asked: AskedLimit,
): Refusal | undefined {
  if (effect.kind !== "limited") {
    const why = "a descriptor without a limit, next to others with one";
    return { why, instead: "leave the unlimited descriptor out" };
  }
  if (path.some(isPattern)) {
    return { why: "patterns of keys and values", instead: "list each value that is limited" };
  }
  const isShadowed = others.some(
    (other) => other.path !== path && other.effect.kind !== "none" && isMoreExact(other.path, path),
  );
  if (isShadowed) {
    const why = "a limit for all values except those with their own limit";
    return { why, instead: "leave the limits of single values out" };
  }
  const found = effect.limits.map((limit) => refusalOfLimit(limit, asked));
  return refusalOfCosts(asked) ?? found.find((refusal) => refusal !== undefined);
}

/** Reports whether a path matches part of what another path matches. */
function isMoreExact(path: readonly PathStep[], other: readonly PathStep[]): boolean {
  if (path.length !== other.length) return false;
  return path.every((step, at) => {
    const wider = other[at];
    return step.key === wider?.key && (wider.value === undefined || wider.value === step.value);
  });
}

function refusalOfCosts({ request, streamDone, isTwice }: AskedLimit): Refusal | undefined {
  if (isTwice) {
    const why = "the same descriptor twice";
    return { why, instead: "write it once, with the hits of both" };
  }
  for (const descriptor of [request, streamDone]) {
    if (descriptor?.isRefund === true) {
      const why = "hits that are refunded";
      return { why, instead: "limit active requests with admission: {maxInFlight: 100}" };
    }
    if (descriptor?.hits.kind === "format" && metadataOf(descriptor.hits.format) === undefined) {
      const why = "hits from a format, except a single metadata value";
      const instead = 'hits: {format: "%DYNAMIC_METADATA(namespace:key)%"}, set by your own filter';
      return { why, instead, isForExtProc: false };
    }
  }
  return undefined;
}

/** Headgate settles such limits after a check with no hits, which is how Envoy Gateway asks. */
function refusalOfLimit(
  { role, unitMultiplier, burst, hits, algorithm, peek }: Limit,
  { request }: AskedLimit,
): Refusal | undefined {
  if (denialOf(role) === "quota") {
    return { why: "limits that only deny together", instead: "leave quota_mode out" };
  }
  if (isSettled(role) && request !== undefined && !isFree(request)) {
    const why = "settled limits with requests that cost something on arrival";
    return { why, instead: "hits: 0 there, or leave charge: settle out" };
  }
  if (peek === "exhausted") {
    const why = "denying zero hits as soon as nothing remains";
    return { why, instead: "leave peek out: they are denied once the limit is in debt" };
  }
  if (unitMultiplier !== 1) {
    return { why: "periods of more than one unit", instead: "use a single unit" };
  }
  if (burst !== hits) {
    return { why: "a burst in addition to the number of requests", instead: "leave burst out" };
  }
  return algorithm?.kind === "fixed_window"
    ? { why: "a window algorithm for a single limit", instead: "leave algorithm and time_zone out" }
    : undefined;
}

function isFree({ hits }: ServiceDescriptor): boolean {
  return hits.kind === "fixed" && hits.count === 0;
}

/** @param refusal suggests ext_proc, too, if it can send everything that the service requests */
function reportRefusal(
  { why, instead, isForExtProc = true }: Refusal,
  { service, context, asked }: AskedPlace,
): void {
  const descriptors = service.rateLimit?.descriptors ?? [];
  const hint =
    isForExtProc && descriptors.every(isAskable)
      ? `${instead}; or ${inExtProc(service)}, and ext_proc calls the Headgate of this policy`
      : instead;
  context.report({
    id: "HG353",
    spot: spotOf({ service, asked }),
    message: `Envoy Gateway's own rate limits do not support this: ${why}`,
    hint,
  });
}

function inExtProc({ admission }: ServicePolicy): string {
  const words = "rateLimit: {inExtProc: true}";
  return admission === undefined ? `${words} with admission: {}` : words;
}

function spotOf({ service, asked }: Pick<AskedPlace, "service" | "asked">) {
  return { service: service.name, path: ["rateLimit", "descriptors", String(asked.index)] };
}

function isAskable({ parts, hits, when }: ServiceDescriptor): boolean {
  if (when !== "request" || hits.kind !== "fixed") return false;
  return parts.every(({ kind }) => ["remoteAddress", "header", "fixed"].includes(kind));
}

/** Returns the clients that a rule applies to. Undefined if unsupported, which is reported. */
function selectorOf(path: readonly PathStep[], place: AskedPlace): TreeMap | undefined {
  const headers: Tree[] = [];
  const queryParams: Tree[] = [];
  let sourceCIDR: TreeMap | undefined;
  for (const [at, part] of place.asked.parts.entries()) {
    const value = path[at]?.value;
    switch (part.kind) {
      case "fixed":
        break;
      case "header":
        headers.push(matchOf(part.header, value));
        break;
      case "query":
        needsQuery(place);
        queryParams.push(matchOf(part.parameter, value));
        break;
      case "remoteAddress":
        sourceCIDR =
          value === undefined
            ? { type: "Distinct", value: "0.0.0.0/0" }
            : { type: "Exact", value: `${value}/${value.includes(":") ? 128 : 32}` };
        break;
      default:
        reportRefusal(
          {
            why: `entries of the kind ${part.kind === "expression" ? "cel" : part.kind}`,
            instead: "use a header, a query parameter, remote_address, or a fixed value",
          },
          place,
        );
        return undefined;
    }
  }
  return {
    headers: headers.length === 0 ? undefined : headers,
    queryParams: queryParams.length === 0 ? undefined : queryParams,
    sourceCIDR,
  };
}

/** Matches each distinct value, or one value. */
function matchOf(name: string, value: string | undefined): TreeMap {
  return value === undefined ? { name, type: "Distinct" } : { name, type: "Exact", value };
}

function needsQuery(place: AskedPlace): void {
  const what = "limits by query parameters";
  needs(place, { feature: "queryParams", what, instead: "limit by a header" });
}

/** Returns whether this Envoy Gateway has a feature, and reports it if it does not. */
function needs(place: AskedPlace, old: Pick<OldGateway, "feature" | "what" | "instead">): boolean {
  if (hasGatewayFeature(place.context, old.feature)) return true;
  reportOldGateway(place.context, { ...spotOf(place), ...old });
  return false;
}

const units: Readonly<Record<Limit["unit"], string>> = {
  second: "Second",
  minute: "Minute",
  hour: "Hour",
  day: "Day",
  week: "Week",
  month: "Month",
  year: "Year",
};

function unitOf({ unit }: Limit, place: AskedPlace): string {
  if (unit === "week" || unit === "month" || unit === "year") {
    const feature = unit === "week" ? "weeks" : "months";
    needs(place, { feature, what: `limits per ${unit}`, instead: "limit per day" });
  }
  return units[unit];
}

function shadowMode(place: AskedPlace): true | undefined {
  const instead = "leave out the limit and its descriptors until it should deny";
  const what = "limits that only count";
  return needs(place, { feature: "shadowMode", what, instead }) ? true : undefined;
}

/**
 * Returns a request's cost, unless it is 1 on arrival. If it is only charged after the response,
 * requests are first checked with no hits: they are denied if over the limit, and all costs count.
 */
function costOf(place: AskedPlace): TreeMap | undefined {
  const { request, streamDone } = place.asked;
  const isDefault = request?.hits.kind === "fixed" && request.hits.count === 1;
  if (isDefault && streamDone === undefined) return undefined;
  const what = "requests that cost more or less than 1, or are charged after the response";
  const instead = "leave hits and when out";
  if (!needs(place, { feature: "costs", what, instead })) return undefined;
  return {
    request: request === undefined ? noHits : costSpecifier(request),
    response: streamDone && noted(reportedLater(streamDone), costSpecifier(streamDone)),
  };
}

const noHits = { from: "Number", number: 0 };

function costSpecifier({ hits }: ServiceDescriptor): TreeMap {
  return hits.kind === "fixed"
    ? { from: "Number", number: hits.count }
    : { from: "Metadata", metadata: metadataOf(hits.format) };
}

function reportedLater({ hits }: ServiceDescriptor): string {
  const when = "After the response";
  return hits.kind === "fixed"
    ? `${when}.`
    : `${when}, from metadata that your own filter sets, such as an EnvoyExtensionPolicy.`;
}

/** Parses a metadata command operator into namespace and key. Undefined for all others. */
function metadataOf(
  format: string,
): { readonly namespace: string; readonly key: string } | undefined {
  const [, namespace, key] = /^%DYNAMIC_METADATA\(([^:()]+):([^:()]+)\)%$/.exec(format) ?? [];
  return namespace === undefined || key === undefined ? undefined : { namespace, key };
}
