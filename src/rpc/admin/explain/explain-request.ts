import { mayAct, type Principal } from "../../../core/base/access-list.js";
import { usageCountMax } from "../../../core/budgets/usage.js";
import { costHitsMax } from "../../../core/limits/bucket.js";
import { cutModel } from "../../../core/usage/usage-fields.js";
import {
  bucketQuery,
  type LeftOutDescriptor,
  serviceQuery,
} from "../../../decide/admission/service-query.js";
import type { BudgetedRequest } from "../../../decide/budget/budget-call.js";
import type { Explanation } from "../../../decide/inspect/explain.js";
import type { ExplainedUsage } from "../../../decide/inspect/explain-budgets.js";
import {
  type DescriptorQuery,
  descriptorCountMax,
  type RateLimitQuery,
  textLengthMax,
} from "../../../decide/rate-limit/query.js";
import type {
  DescriptorRequest,
  ExplainRequest,
  Explanation as ExplanationMessage,
  HttpRequest,
} from "../../../gen/headgate/admin/v1/admin_pb.js";
import type { BudgetPolicy } from "../../../policy/budgets/budget-policy.js";
import {
  addressAttribute,
  pathHeader,
  type RequestFacts,
} from "../../../policy/cel/request-facts.js";
import type { Policy } from "../../../policy/policy.js";
import type { QuotaPart } from "../../../policy/quotas/quota-parts.js";
import type { QuotaPolicy } from "../../../policy/quotas/quota-policy.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { findNearestName } from "../../../policy/text/nearest-name.js";
import type { Plain } from "../../codec/plain-message.js";
import { domainOfBudget } from "../budget-parts.js";
import { AdminFailure, demandRoleOf, notFound } from "../failures.js";
import { type ExplainedQuota, encodeExplanation, encodeQuotaUse } from "../messages.js";
import { keyNameBounds, RequestReader } from "../request-reader.js";
import type { AdminServiceParts } from "../service-parts.js";

/** Maximum number of headers of an explained request. */
const headersMax = 200;

/** Maximum number of quotas that are explained for one request: each needs a store call. */
const explainedQuotasMax = 20;

/** Dependencies of an explanation by one policy. */
export type ExplainByParts = Pick<
  AdminServiceParts,
  "overrides" | "explainer" | "peek" | "clock" | "quotas" | "budgetExplainer"
>;

/** A request, and the caller that it is explained to. */
interface Explaining {
  readonly request: Plain<ExplainRequest>["request"];
  readonly caller: Principal;
  /** The active policy of this process. Undefined: none. */
  readonly active: Policy | undefined;
}

/**
 * Explains why a policy lets a request pass or refuses it, as far as the caller may see it.
 *
 * @throws AdminFailure
 */
export async function explainBy(
  parts: ExplainByParts,
  policy: Policy,
  explaining: Explaining,
): Promise<Plain<ExplanationMessage>> {
  const { request, caller } = explaining;
  const asked = readQuestion(request, policy, caller);
  const { query, leftOut, met } = asked;
  demandRoleOf(caller, "reader", asked.domain);
  const explain = (what: RateLimitQuery): Promise<Explanation> => explainQuery(what, policy, parts);
  const source = {
    service: asked.measured?.service.name ?? "",
    leftOut,
    nearestDomain: nearestDomain(asked.domain, policy, caller),
    quotas: await explainQuotas(met.slice(0, explainedQuotasMax), parts, explain),
    usage: asked.measured && (await explainUsage(asked.measured, parts, { policy, explaining })),
    prices: policy.prices,
  };
  if (query === undefined) {
    const isDomainKnown = asked.domain === undefined || policy.domains.has(asked.domain);
    const { version: policyVersion } = policy;
    const nothing = { policyVersion, isDomainKnown, isDenied: false, descriptors: [] };
    return encodeExplanation(nothing, source);
  }
  return encodeExplanation(await explain(query), source);
}

/** Returns the visible domain whose name is nearest to one that the policy does not have. */
function nearestDomain(
  domain: string | undefined,
  { domains }: Policy,
  caller: Principal,
): string | undefined {
  if (domain === undefined || domains.has(domain)) return undefined;
  return findNearestName(
    domain,
    [...domains.keys()].filter((one) => mayAct(caller, "reader", one)),
  );
}

function explainQuery(
  query: RateLimitQuery,
  policy: Policy,
  { explainer, overrides, peek, clock }: ExplainByParts,
): Promise<Explanation> {
  const epochUs = clock.epochUs();
  return explainer.explain({ query, policy, overrides: overrides.current(), peek, epochUs });
}

/** Explains the budgets of the service that the caller may see, and the request's accounts. */
function explainUsage(
  { service, request }: MeasuredRequest,
  { budgetExplainer, clock }: ExplainByParts,
  { policy, explaining }: { readonly policy: Policy; readonly explaining: Explaining },
): Promise<ExplainedUsage | undefined> {
  const { caller, active } = explaining;
  const mayRead = (of: Policy, budget: BudgetPolicy): boolean =>
    mayAct(caller, "reader", domainOfBudget({ policies: { current: () => of } }, budget));
  return budgetExplainer.explain({
    policy,
    service,
    request,
    sightOf: (budget) => {
      // Accounts belong to the active budget of this name. A candidate, which the caller writes,
      // must not show more of them than that budget does: with amounts of the caller's choice, even
      // its verdict would reveal what is spent. Callers get the active policy's verdict anyway.
      const own = active?.budgets.find(({ name }) => name === budget.name);
      const isHidden = active !== undefined && own !== undefined && !mayRead(active, own);
      if (isHidden || !mayRead(policy, budget)) return policy === active ? "verdict" : "none";
      return own === undefined ? "policy" : "all";
    },
    epochUs: clock.epochUs(),
  });
}

/** Explains the limits of quotas' buckets, and how much of them Envoys hold. */
async function explainQuotas(
  met: readonly MetQuota[],
  { quotas }: ExplainByParts,
  explain: (query: RateLimitQuery) => Promise<Explanation>,
): Promise<readonly ExplainedQuota[]> {
  const view = quotas?.view();
  const explained: ExplainedQuota[] = [];
  for (const { quota, query } of met) {
    const [descriptor] = (await explain(query)).descriptors;
    if (descriptor === undefined) continue;
    const pool = view?.poolOf(descriptor.limits.map(({ key }) => key));
    explained.push({ quota, descriptor, use: encodeQuotaUse(pool) });
  }
  return explained;
}

/** A quota, and its bucket as a query. */
interface MetQuota {
  readonly quota: QuotaPolicy;
  readonly query: RateLimitQuery;
}

/** Returns the quotas that apply to a request of a service. */
function quotasOfRequest(
  { quotas }: Policy,
  service: string,
  facts: RequestFacts,
): readonly MetQuota[] {
  return quotas.flatMap((quota) => {
    const query = bucketQuery(quota, service, facts);
    return query === undefined ? [] : [{ quota, query }];
  });
}

/** Returns the quotas that have these descriptors as buckets. */
function quotasOfDescriptors(
  { quotas }: Policy,
  { domain, descriptors }: RateLimitQuery,
): readonly MetQuota[] {
  return quotas.flatMap((quota) => {
    if (quota.domain !== domain) return [];
    const same = descriptors.filter(({ entries }) => isBucketOf(quota, entries));
    return same.map((descriptor) => ({ quota, query: { domain, descriptors: [descriptor] } }));
  });
}

function isBucketOf({ bucket }: QuotaPolicy, entries: DescriptorQuery["entries"]): boolean {
  const isSame = (part: QuotaPart, i: number): boolean => {
    const entry = entries[i];
    if (entry?.key !== part.key) return false;
    return part.kind !== "fixed" || part.value === entry.value;
  };
  return bucket.length === entries.length && bucket.every(isSame);
}

/** The request to explain, in terms of a policy. */
interface Question {
  /** Undefined: the service has no limits, only budgets. */
  readonly domain: string | undefined;
  /** Undefined: there is no descriptor to check. */
  readonly query: RateLimitQuery | undefined;
  /** Undefined: the request consists of descriptors. */
  readonly measured: MeasuredRequest | undefined;
  readonly leftOut: readonly LeftOutDescriptor[];
  readonly met: readonly MetQuota[];
}

/** A request of a service. */
interface MeasuredRequest {
  readonly service: ServicePolicy;
  readonly request: BudgetedRequest;
}

function readQuestion(
  request: Plain<ExplainRequest>["request"],
  policy: Policy,
  caller: Principal,
): Question {
  switch (request.case) {
    case "descriptors": {
      const query = readDescriptors(request.value);
      const met = quotasOfDescriptors(policy, query);
      return { domain: query.domain, query, measured: undefined, leftOut: [], met };
    }
    case "http":
      return askService(request.value, policy, caller);
    default:
      throw new AdminFailure("invalid", "request: set descriptors or http");
  }
}

function readDescriptors({ domain, descriptors }: Plain<DescriptorRequest>): RateLimitQuery {
  const reader = new RequestReader();
  reader.text("descriptors.domain", domain, { ...keyNameBounds, isNeeded: true });
  if (descriptors.length === 0) reader.report("descriptors.descriptors", "set one");
  if (descriptors.length > descriptorCountMax) {
    reader.report("descriptors.descriptors", `it has more than ${descriptorCountMax}`);
  }
  reader.end();
  const asked = descriptors.map(({ entries, hits }, i): DescriptorQuery => {
    const place = `descriptors.descriptors[${i}]`;
    const rule = { min: 0, max: costHitsMax };
    return {
      entries: reader.entries(`${place}.entries`, entries),
      hits: Math.max(1, reader.whole(`${place}.hits`, hits, rule)),
      isRefund: false,
    };
  });
  reader.end();
  return { domain, descriptors: asked };
}

/**
 * Returns what Envoy would ask for a request, by the actions of the service with its host. A
 * service of a domain that the caller may not see counts as unknown.
 */
function askService(request: Plain<HttpRequest>, policy: Policy, caller: Principal): Question {
  const facts = readFacts(request);
  const { host } = request;
  const service = (policy.serviceIndex.at(host) ?? policy.serviceIndex.named(host))?.service;
  const mayRead = (domain?: string): boolean => mayAct(caller, "reader", domain);
  const all = service === undefined ? [] : quotasOfRequest(policy, service.name, facts);
  const met = all.filter(({ quota }) => mayRead(quota.domain));
  const domain = service?.rateLimit?.domain ?? met[0]?.quota.domain;
  if (service === undefined || !mayRead(domain)) {
    const visible = policy.services.filter(({ rateLimit }) => mayRead(rateLimit?.domain));
    const names = visible.flatMap(({ name, hosts }) => [name, ...hosts]);
    throw notFound("service with this host", host, names);
  }
  const { query, leftOut } = serviceQuery(service, facts) ?? { query: undefined, leftOut: [] };
  if (domain === undefined && service.usage === undefined) {
    throw new AdminFailure("notFound", "the service of this host has no rate limits and no usage");
  }
  return { domain, query, measured: { service, request: facts }, leftOut, met };
}

function readFacts(request: Plain<HttpRequest>): BudgetedRequest {
  const { method, host, path, headers, remoteAddress, model, outputTokensMax } = request;
  const reader = new RequestReader();
  const pairs = Object.entries(headers);
  if (pairs.length > headersMax) reader.report("http.headers", `it has more than ${headersMax}`);
  const texts = [method, host, path, remoteAddress, model, ...pairs.flat()];
  if (texts.some((text) => text.length > textLengthMax)) {
    reader.report("http", `a text has more than ${textLengthMax} characters`);
  }
  reader.text("http.host", host, { ...keyNameBounds, isNeeded: true });
  const declared =
    outputTokensMax === undefined
      ? undefined
      : reader.whole("http.outputTokensMax", outputTokensMax, { min: 0, max: usageCountMax });
  reader.end();
  const lower = pairs.map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    headers: new Map([
      ...lower,
      [":method", method === "" ? "GET" : method],
      [":authority", host],
      [pathHeader, path === "" ? "/" : path],
    ]),
    attributes: new Map(remoteAddress === "" ? [] : [[addressAttribute, remoteAddress]]),
    facts: {
      model: cutModel(model),
      ...(declared === undefined ? {} : { outputTokensMax: declared }),
    },
    isObserved: false,
  };
}
