import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { mayAct } from "../../core/base/access-list.js";
import { costHitsMax } from "../../core/limits/bucket.js";
import {
  bucketQuery,
  type LeftOutDescriptor,
  serviceQuery,
} from "../../decide/admission/service-query.js";
import type { Explanation } from "../../decide/inspect/explain.js";
import {
  type DescriptorQuery,
  descriptorCountMax,
  type RateLimitQuery,
  textLengthMax,
} from "../../decide/rate-limit/query.js";
import {
  type DescriptorRequest,
  type ExplainRequest,
  ExplainRequestSchema,
  type HttpRequest,
  type LimitService,
  type PolicyFile as PolicyFileMessage,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { addressAttribute, pathHeader, type RequestFacts } from "../../policy/cel/request-facts.js";
import type { PolicyText } from "../../policy/parse.js";
import type { Policy } from "../../policy/policy.js";
import type { QuotaPart } from "../../policy/quotas/quota-parts.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import { findNearestName } from "../../policy/text/nearest-name.js";
import {
  type CallerContext,
  callerOf,
  demandRole,
  notFound,
  ownCaller,
  serviceFilter,
  visibleAmong,
} from "./call.js";
import { AdminFailure, toConnectError } from "./failures.js";
import { keyNameBounds, policyOf } from "./key-methods.js";
import { type ExplainedQuota, encodeExplanation } from "./messages.js";
import { encodeQuotaUse } from "./quota-service.js";
import { RequestReader } from "./request-reader.js";
import type { AdminServiceParts } from "./service-parts.js";

/** The most headers of a request that is explained. */
const headersMax = 200;

/** Quotas of one request that are explained: each asks the store. */
const explainedQuotasMax = 20;

/** The most texts of a policy. */
export const explainedFilesMax = 1_000;

/** What an explanation by one policy is made of. */
export type ExplainByParts = Pick<
  AdminServiceParts,
  "overrides" | "explainer" | "peek" | "clock" | "quotas"
>;

/** What explanations are made of. */
type ExplainParts = ExplainByParts & Pick<AdminServiceParts, "policies" | "readCandidate">;

/** Why a request passes or is refused, by the active policy and by another one. */
export function explainMethod(
  parts: ExplainParts,
): Pick<ServiceImpl<typeof LimitService>, "explain"> {
  return {
    explain: async (request, context) => {
      const policy = policyOf(parts);
      const files = readFiles("candidate", request.candidate);
      const current = await explainBy(parts, policy, { request, context });
      if (files.length === 0) return { current };
      const candidate = await readCandidate(parts, files);
      return { current, candidate: await explainBy(parts, candidate, { request, context }) };
    },
  };
}

interface Explaining {
  readonly request: ExplainRequest;
  readonly context: CallerContext;
}

/** Whoever has a policy's files may see all of it. */
const owner = { name: "", grants: [{ role: "reader", domains: undefined }] } as const;

/**
 * The same for a policy that no replica runs with.
 *
 * @throws ConnectError as the method answers it
 */
export async function explainApart(
  parts: ExplainByParts,
  policy: Policy,
  request: ExplainRequest["request"],
): ReturnType<typeof explainBy> {
  const asked = create(ExplainRequestSchema, { request });
  try {
    return await explainBy(parts, policy, { request: asked, context: ownCaller(owner) });
  } catch (thrown) {
    const { error, isBug } = toConnectError(thrown);
    throw isBug ? thrown : error;
  }
}

async function explainBy(parts: ExplainByParts, policy: Policy, { request, context }: Explaining) {
  const asked = readQuestion(request, policy, context);
  const { query, service, leftOut, met } = asked;
  demandRole(context, "reader", asked.domain);
  const explain = (what: RateLimitQuery): Promise<Explanation> => explainQuery(what, policy, parts);
  const source = {
    service,
    leftOut,
    nearestDomain: nearestDomain(asked.domain, policy, context),
    quotas: await explainQuotas(met.slice(0, explainedQuotasMax), parts, explain),
  };
  if (query === undefined) {
    const isDomainKnown = policy.domains.has(asked.domain);
    const { version: policyVersion } = policy;
    const nothing = { policyVersion, isDomainKnown, isDenied: false, descriptors: [] };
    return encodeExplanation(nothing, source);
  }
  return encodeExplanation(await explain(query), source);
}

/** What may have been meant by a domain that the policy does not have; among those one may see. */
function nearestDomain(
  domain: string,
  { domains }: Policy,
  context: CallerContext,
): string | undefined {
  if (domains.has(domain)) return undefined;
  return findNearestName(domain, visibleAmong(context, domains.keys()));
}

function explainQuery(
  query: RateLimitQuery,
  policy: Policy,
  { explainer, overrides, peek, clock }: ExplainByParts,
): Promise<Explanation> {
  const epochUs = clock.epochUs();
  return explainer.explain({ query, policy, overrides: overrides.current(), peek, epochUs });
}

/** The limits that the buckets of quotas reach, and what Envoys have of them. */
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

async function readCandidate(parts: ExplainParts, files: readonly PolicyText[]): Promise<Policy> {
  const read = await parts.readCandidate(files);
  switch (read.kind) {
    case "policy":
      return read.policy;
    case "problems": {
      const more =
        read.count > 1 ? ` (and ${read.count - 1} more; ValidatePolicy returns all)` : "";
      throw new AdminFailure("invalid", `candidate: ${read.first}${more}`);
    }
    case "failed":
      throw new AdminFailure("unavailable", `candidate: ${read.message}`);
  }
}

/** A quota, and the bucket of it that something is of. */
interface MetQuota {
  readonly quota: QuotaPolicy;
  readonly query: RateLimitQuery;
}

/** The quotas that a request of a service meets. */
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

/** The quotas that descriptors are buckets of. */
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

/** What is to be explained, in terms of a policy. */
interface Question {
  readonly domain: string;
  /** Undefined: no descriptor is asked for. */
  readonly query: RateLimitQuery | undefined;
  readonly service: string;
  readonly leftOut: readonly LeftOutDescriptor[];
  readonly met: readonly MetQuota[];
}

function readQuestion(
  { request }: ExplainRequest,
  policy: Policy,
  context: CallerContext,
): Question {
  switch (request.case) {
    case "descriptors": {
      const query = readDescriptors(request.value);
      const met = quotasOfDescriptors(policy, query);
      return { domain: query.domain, query, service: "", leftOut: [], met };
    }
    case "http":
      return askService(request.value, policy, context);
    default:
      throw new AdminFailure("invalid", "request: set descriptors or http");
  }
}

function readDescriptors({ domain, descriptors }: DescriptorRequest): RateLimitQuery {
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
 * What Envoy would ask for a request, through the actions of the service that has its host. A
 * service of a domain that the caller may not see is none.
 */
function askService(request: HttpRequest, policy: Policy, context: CallerContext): Question {
  const facts = readFacts(request);
  const { host } = request;
  const service = (policy.serviceIndex.at(host) ?? policy.serviceIndex.named(host))?.service;
  const mayRead = (domain?: string): boolean => mayAct(callerOf(context), "reader", domain);
  const all = service === undefined ? [] : quotasOfRequest(policy, service.name, facts);
  const met = all.filter(({ quota }) => mayRead(quota.domain));
  const domain = service?.rateLimit?.domain ?? met[0]?.quota.domain;
  if (service === undefined || !mayRead(domain)) {
    const visible = policy.services.filter(serviceFilter(context));
    const names = visible.flatMap(({ name, hosts }) => [name, ...hosts]);
    throw notFound("service with this host", host, names);
  }
  const { query, leftOut } = serviceQuery(service, facts) ?? { query: undefined, leftOut: [] };
  if (domain === undefined) {
    throw new AdminFailure("notFound", "the service of this host has no rate limits");
  }
  return { domain, query, service: service.name, leftOut, met };
}

function readFacts({ method, host, path, headers, remoteAddress }: HttpRequest): RequestFacts {
  const reader = new RequestReader();
  const pairs = Object.entries(headers);
  if (pairs.length > headersMax) reader.report("http.headers", `it has more than ${headersMax}`);
  const texts = [method, host, path, remoteAddress, ...pairs.flat()];
  if (texts.some((text) => text.length > textLengthMax)) {
    reader.report("http", `a text has more than ${textLengthMax} characters`);
  }
  reader.text("http.host", host, { ...keyNameBounds, isNeeded: true });
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
  };
}

/** A policy's texts; how long they may be the parser itself looks at. */
export function readFiles(
  place: string,
  files: readonly PolicyFileMessage[],
): readonly PolicyText[] {
  const reader = new RequestReader();
  if (files.length > explainedFilesMax)
    reader.report(place, `it has more than ${explainedFilesMax}`);
  reader.end();
  const names = new Set<string>();
  files.forEach(({ file }, i) => {
    const name = reader.text(`${place}[${i}].file`, file, { charsMax: 1_024, isNeeded: true });
    if (names.has(name)) reader.report(`${place}[${i}].file`, "another one has the same name");
    names.add(name);
  });
  reader.end();
  return files.map(({ file, text }) => ({ file, text }));
}
