import { isPattern, type Limit, type PathStep, type Rule } from "../../core/limit.js";
import type {
  DescriptorPart,
  ServiceDescriptor,
  ServicePolicy,
} from "../../policy/service-policy.js";
import { noted, type Tree, type TreeMap } from "../document.js";
import type { EnvoyContext } from "../envoy/context.js";
import { hasGatewayFeature, reportOldGateway } from "./gateway-version.js";

/** Why a limit is not one that Envoy Gateway has words for; undefined: it is. */
type Refusal = string | undefined;

/**
 * The limits of a service as Envoy Gateway has them: it translates them into a policy of its own
 * and hands that to the Headgate that stands in the place of its rate-limit service.
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
  const rules = rateLimit.descriptors.flatMap((descriptor, index) => {
    const place: DescriptorPlace = { service, context, descriptor, index };
    return ofDomain
      .filter((rule) => meets(rule, descriptor))
      .flatMap((rule) => rulesOf(rule, ofDomain, place));
  });
  if (rules.length === 0) return undefined;
  return { type: "Global", global: { rules } };
}

interface DescriptorPlace {
  readonly service: ServicePolicy;
  readonly context: EnvoyContext;
  readonly descriptor: ServiceDescriptor;
  readonly index: number;
}

/** Whether a descriptor with these parts can meet a rule that limits. */
function meets({ path, effect }: Rule, { parts }: ServiceDescriptor): boolean {
  if (effect.kind === "none" || path.length !== parts.length) return false;
  return parts.every((part, at) => {
    const step = path[at];
    if (step === undefined || (step.key !== part.key && !step.key.includes("*"))) return false;
    return part.kind !== "fixed" || step.value === undefined || isPattern(step)
      ? true
      : step.value === part.value;
  });
}

function rulesOf(rule: Rule, others: readonly Rule[], place: DescriptorPlace): readonly Tree[] {
  const refusal = refusalOf(rule, others, place.descriptor);
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
    }),
  );
}

function refusalOf(
  { path, effect }: Rule,
  others: readonly Rule[],
  { hits, isRefund }: ServiceDescriptor,
): Refusal {
  if (effect.kind !== "limited") return "a descriptor without a limit, beside others with one";
  if (path.some(isPattern)) return "patterns of keys and values";
  const isShadowed = others.some(
    (other) => other.path !== path && other.effect.kind !== "none" && isMoreExact(other.path, path),
  );
  if (isShadowed) return "a limit for all values but those that have one of their own";
  if (isRefund || hits.kind === "format") return "hits that are given back, or found by a format";
  return effect.limits.map(refusalOfLimit).find((refusal) => refusal !== undefined);
}

/** Whether a path stands for some of what another one stands for. */
function isMoreExact(path: readonly PathStep[], other: readonly PathStep[]): boolean {
  if (path.length !== other.length) return false;
  return path.every((step, at) => {
    const wider = other[at];
    return step.key === wider?.key && (wider.value === undefined || wider.value === step.value);
  });
}

function refusalOfLimit({ role, unitMultiplier, burst, hits, algorithm }: Limit): Refusal {
  if (role !== "enforce") return `limits that only ${role}`;
  if (unitMultiplier !== 1) return "periods of more than one unit";
  if (burst !== hits) return "a burst beside the number of requests";
  return algorithm?.kind === "fixed_window" ? "windows by a limit's own choice" : undefined;
}

function reportRefusal(
  refusal: string,
  { service, context, index }: DescriptorPlace,
  hint = "rateLimit: {inExtProc: true}, and the Headgate of this policy is asked in ext_proc",
): void {
  context.report({
    id: "HG353",
    spot: { service: service.name, path: ["rateLimit", "descriptors", String(index)] },
    message: `Envoy Gateway's own rate limits cannot say this: ${refusal}`,
    hint,
    severity: "error",
  });
}

const entryHint = "take a header, a parameter of the query, remote_address, or a fixed value";

/** Whom a rule is for; undefined where that cannot be said, which is reported. */
function selectorOf(path: readonly PathStep[], place: DescriptorPlace): TreeMap | undefined {
  const headers: Tree[] = [];
  const queryParams: Tree[] = [];
  let sourceCIDR: TreeMap | undefined;
  for (const [at, part] of place.descriptor.parts.entries()) {
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
        reportRefusal(`entries of the kind ${wordOf(part)}`, place, entryHint);
        return undefined;
    }
  }
  return {
    headers: headers.length === 0 ? undefined : headers,
    queryParams: queryParams.length === 0 ? undefined : queryParams,
    sourceCIDR,
  };
}

function wordOf({ kind }: DescriptorPart): string {
  return kind === "expression" ? "cel" : kind;
}

/** Each value by itself, or one. */
function matchOf(name: string, value: string | undefined): TreeMap {
  return value === undefined ? { name, type: "Distinct" } : { name, type: "Exact", value };
}

function needsQuery({ service, context, index }: DescriptorPlace): void {
  if (hasGatewayFeature(context, "queryParams")) return;
  reportOldGateway(context, {
    service: service.name,
    path: ["rateLimit", "descriptors", String(index)],
    feature: "queryParams",
    what: "limits by parameters of the query",
    instead: "limit by a header",
  });
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

function unitOf({ unit }: Limit, { service, context, index }: DescriptorPlace): string {
  const feature = unit === "week" ? "weeks" : "costs";
  const isYoung = unit === "week" || unit === "month" || unit === "year";
  if (isYoung && !hasGatewayFeature(context, feature)) {
    reportOldGateway(context, {
      service: service.name,
      path: ["rateLimit", "descriptors", String(index)],
      feature,
      what: `limits by the ${unit}`,
      instead: "limit by the day",
    });
  }
  return units[unit];
}

/** What a request costs, where that is not 1; told after the response where the policy says so. */
function costOf({ descriptor, service, context, index }: DescriptorPlace): TreeMap | undefined {
  const { hits, when } = descriptor;
  if (hits.kind === "format") return undefined;
  if (hits.count === 1 && when === "request") return undefined;
  if (!hasGatewayFeature(context, "costs")) {
    reportOldGateway(context, {
      service: service.name,
      path: ["rateLimit", "descriptors", String(index)],
      feature: "costs",
      what: "requests that cost more or less than 1, or are told of after the response",
      instead: "rateLimit: {inExtProc: true}",
    });
    return undefined;
  }
  const cost = { from: "Number", number: hits.count };
  return when === "request"
    ? { request: cost }
    : { request: { from: "Number", number: 0 }, response: cost };
}
