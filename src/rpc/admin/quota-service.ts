import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { microHzPerHz, type QuotaAssignment } from "../../core/quota/quota.js";
import type { QuotaHolderView, QuotaPoolView, QuotaView } from "../../decide/quota/quota-view.js";
import type {
  QuotaPoolSchema,
  QuotaSchema,
  QuotaService,
  QuotaShareSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import { demandPart } from "./call.js";
import { notFound } from "./failures.js";
import { policyOf, readAsked } from "./key-methods.js";
import {
  boundOf,
  durationOf,
  encodeEntries,
  encodeQuotaUse,
  heldRate,
  wideOf,
} from "./messages.js";
import { pageRule, readVersionedToken, versionedToken } from "./pages.js";
import { keyNameBounds, RequestReader } from "./request-reader.js";
import type { AdminServiceParts } from "./service-parts.js";

/** Number of pools in a response. */
const poolsRule = { max: 100, defaultValue: 10 } as const;

/** Number of shares of each pool. */
const sharesRule = { max: 1_000, defaultValue: 20 } as const;

/** Dependencies of this service. */
type QuotaServiceParts = Pick<AdminServiceParts, "policies" | "quotas">;

/** Creates QuotaService: the quotas, the demand for them, and who holds how much. */
export function quotaService(parts: QuotaServiceParts): ServiceImpl<typeof QuotaService> {
  return {
    listQuotas: (request, context) => {
      const view = demandPart(parts.quotas).view();
      const reader = new RequestReader();
      const countMax = reader.count("page_size", request.pageSize, pageRule);
      const { domains } = readAsked(parts, request, { reader, context });
      const policy = policyOf(parts);
      const quotas = policy.quotas.filter((one) => domains?.includes(one.domain) ?? true);
      const after = readVersionedToken(request.pageToken, policy.version);
      const shown = quotas.slice(after, after + countMax);
      const uses = usesOf(view, new Set(shown.map(({ name }) => name)));
      const next = after + shown.length;
      return {
        quotas: shown.map((quota) => encodeQuota(quota, uses.get(quota.name) ?? noUse)),
        nextPageToken: next < quotas.length ? versionedToken(next, policy.version) : "",
        policyVersion: policy.version,
      };
    },
    listQuotaPools: (request, context) => {
      const view = demandPart(parts.quotas).view();
      const reader = new RequestReader();
      const countMax = reader.count("count", request.count, poolsRule);
      const sharesMax = reader.count("shares_per_pool", request.sharesPerPool, sharesRule);
      const name = reader.text("quota", request.quota, keyNameBounds);
      const { domains } = readAsked(parts, request, { reader, context });
      const policy = policyOf(parts);
      const quotas = policy.quotas.filter((one) => domains?.includes(one.domain) ?? true);
      const names = quotas.map((one) => one.name);
      if (name !== "" && !names.includes(name)) throw notFound("quota", name, names);
      const { pools, poolCount } = busiest(view, { domains, name, countMax });
      return { pools: pools.map((pool) => encodePool(pool, sharesMax)), poolCount };
    },
  };
}

/** How much of one quota is assigned, and how much is requested. */
interface QuotaUse {
  poolCount: number;
  bucketCount: number;
  demandMicroHz: number;
  heldMicroHz: number;
}

const noUse: QuotaUse = { poolCount: 0, bucketCount: 0, demandMicroHz: 0, heldMicroHz: 0 };

/** Sums the pools of each quota. A pool of several quotas counts for each of them. */
function usesOf(view: QuotaView, names: ReadonlySet<string>): ReadonlyMap<string, QuotaUse> {
  const uses = new Map<string, QuotaUse>();
  for (const pool of view.pools()) {
    for (const name of pool.quotas) {
      if (!names.has(name)) continue;
      const use = uses.get(name) ?? { ...noUse };
      use.poolCount += 1;
      use.bucketCount += pool.holderCount;
      use.demandMicroHz += pool.demandMicroHz;
      use.heldMicroHz += boundOf(pool);
      uses.set(name, use);
    }
  }
  return uses;
}

interface WantedPools {
  readonly domains: readonly string[] | undefined;
  /** Empty: of all quotas. */
  readonly name: string;
  readonly countMax: number;
}

/** Returns the pools with the most demand first, and the number of all. */
function busiest(
  view: QuotaView,
  { domains, name, countMax }: WantedPools,
): { readonly pools: readonly QuotaPoolView[]; readonly poolCount: bigint } {
  let best: { readonly pool: QuotaPoolView; readonly demand: number }[] = [];
  let count = 0;
  const cut = (): void => {
    best.sort((a, b) => b.demand - a.demand);
    best = best.slice(0, countMax);
  };
  for (const pool of view.pools()) {
    if (domains !== undefined && !domains.includes(pool.domain)) continue;
    if (name !== "" && !pool.quotas.includes(name)) continue;
    count += 1;
    best.push({ pool, demand: pool.demandMicroHz });
    if (best.length >= 2 * poolsRule.max) cut();
  }
  cut();
  return { pools: best.map(({ pool }) => pool), poolCount: wideOf(count) };
}

function encodeQuota(quota: QuotaPolicy, use: QuotaUse): MessageInitShape<typeof QuotaSchema> {
  const { name, domain, bucket, classes, ttlSeconds, callsShareRatio, beforeAssignment } = quota;
  return {
    name,
    domain,
    bucketKeys: bucket.map(({ key }) => key),
    classHeader: classes?.header ?? "",
    ttl: durationOf(ttlSeconds * 1_000_000),
    callsShare: callsShareRatio,
    beforeAssignment,
    poolCount: wideOf(use.poolCount),
    bucketCount: wideOf(use.bucketCount),
    demandRate: use.demandMicroHz / microHzPerHz,
    ...heldRate(use.heldMicroHz),
  };
}

function encodePool(
  pool: QuotaPoolView,
  sharesMax: number,
): MessageInitShape<typeof QuotaPoolSchema> {
  const { quotas, domain, entries, mode, limits, levelHits, lease } = pool;
  return {
    quotas: [...quotas],
    domain,
    entries: encodeEntries(entries),
    mode,
    limits: limits.map(({ hits, periodUs, burst }, i) => {
      const usedHits = levelHits[i];
      const limit = { hits: wideOf(hits), period: durationOf(periodUs), burst: wideOf(burst) };
      return usedHits === undefined ? limit : { ...limit, usedHits };
    }),
    lease: {
      state: lease.state,
      rate: lease.rateMicroHz / microHzPerHz,
      left: durationOf(lease.leftMs * 1_000),
    },
    ...encodeQuotaUse(pool),
    shares: pool.holders(sharesMax).map(encodeShare),
  };
}

function encodeShare(holder: QuotaHolderView): MessageInitShape<typeof QuotaShareSchema> {
  const { node, weight, demandMicroHz, assignment, heldMicroHz, ageMs, isLeft } = holder;
  const isOpen = assignment?.kind === "blanket" && assignment.rule === "allow";
  return {
    node,
    weight,
    demandRate: demandMicroHz / microHzPerHz,
    ...(assignment === undefined ? {} : { assignment: encodeAssignment(assignment) }),
    ...heldRate(isOpen ? Number.POSITIVE_INFINITY : heldMicroHz),
    age: durationOf(ageMs * 1_000),
    isLeft,
  };
}

function encodeAssignment(assignment: QuotaAssignment) {
  if (assignment.kind === "blanket") return { case: "blanket", value: assignment.rule } as const;
  const { rateMicroHz, tokensMax } = assignment;
  const value = { rate: rateMicroHz / microHzPerHz, tokensMax: wideOf(tokensMax) };
  return { case: "tokens", value } as const;
}
