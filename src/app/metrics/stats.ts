import type { DecisionCounters, HitCounters } from "../../decide/rate-limit/counters.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import { stepLabel } from "../../policy/limits/rule-list.js";
import { statText } from "../options/stats-names.js";
import type { PolicyStatus } from "../policy/active-policy.js";
import type { StorePool } from "../store/store-journal.js";

/** What the statistics are read from. */
export interface StatsSources {
  readonly counters: DecisionCounters;
  readonly policies: PolicySource & { readonly status: PolicyStatus };
  /** Connections to each server of the store; none with the embedded one. */
  readonly storePools: () => readonly StorePool[];
}

/** One statistic as it is now, as envoyproxy/ratelimit names it. */
type Stat =
  | { readonly kind: "counter"; readonly name: string; readonly value: number }
  | { readonly kind: "gauge"; readonly name: string; readonly value: number };

/** Hits under one name, with what the name is made of. */
interface NamedHits {
  readonly domain: string;
  /** A level of the path each; the caller's own text where the policy asked for it. */
  readonly steps: readonly string[];
  readonly hits: HitCounters;
}

/** The statistics of hits: the last part of their names, and where each is counted. */
export const hitStats = [
  { name: "total_hits", field: "total" },
  { name: "over_limit", field: "over" },
  { name: "near_limit", field: "near" },
  { name: "within_limit", field: "within" },
  { name: "shadow_mode", field: "shadow" },
  { name: "over_limit_with_local_cache", field: "overFromMemory" },
  { name: "total_negative_hits", field: "refunded" },
] as const satisfies readonly { readonly name: string; readonly field: keyof HitCounters }[];

/** Whether anything was counted there: what nobody met is not told, or large policies tell most. */
export function hasHits({ total, refunded }: HitCounters): boolean {
  return total > 0 || refunded > 0;
}

/** Hits by name, of rules and of requests' values, where there are any. */
export function* namedHits({ counters, policies }: StatsSources): Generator<NamedHits> {
  const policy = policies.current();
  if (policy === undefined) return;
  const byRule = counters.forPolicy(policy);
  for (const rule of policy.rules) {
    const hits = byRule[rule.index]?.hits;
    if (hits === undefined || !hasHits(hits)) continue;
    yield {
      domain: statText(rule.domain),
      steps: rule.path.map((step) => statText(stepLabel(step))),
      hits,
    };
  }
  for (const { rule, label, hits } of counters.detailed) {
    if (!hasHits(hits)) continue;
    yield { domain: statText(rule.domain), steps: statText(label).split("."), hits };
  }
}

/** What comes before `.total_hits` and the others. */
export function hitsPrefix({ domain, steps }: Omit<NamedHits, "hits">): string {
  return `ratelimit.service.rate_limit.${domain}.${steps.join(".")}`;
}

/** The one gRPC method that is counted. */
export const countedMethod = "ShouldRateLimit";

/** Calls, failed ones included, over gRPC and as JSON. */
export function callCount({ counters }: StatsSources): number {
  let count = counters.okCount + counters.deniedCount;
  for (const failed of counters.failedByCode.values()) count += failed;
  return count;
}

/** Calls that failed: because of the store, or for any other reason. */
export function failedCounts({ counters }: StatsSources): {
  readonly storeErrorCount: number;
  readonly serviceErrorCount: number;
} {
  let storeErrorCount = 0;
  let serviceErrorCount = 0;
  for (const [code, count] of counters.failedByCode) {
    if (code.startsWith("STORE_")) storeErrorCount += count;
    else serviceErrorCount += count;
  }
  return { storeErrorCount, serviceErrorCount };
}

/** The statistics of the service as a whole. */
export function serviceStats(sources: StatsSources): readonly Stat[] {
  const { counters, policies, storePools } = sources;
  const { storeErrorCount, serviceErrorCount } = failedCounts(sources);
  const { loadedCount, refusedCount } = policies.status;
  const call = "ratelimit.service.call.should_rate_limit";
  return [
    counter(`${call}.redis_error`, storeErrorCount),
    counter(`${call}.service_error`, serviceErrorCount),
    counter("ratelimit.service.config_load_success", loadedCount),
    counter("ratelimit.service.config_load_error", refusedCount),
    counter("ratelimit.service.global_shadow_mode", counters.shadowedCount),
    // The domain that nobody knows is a caller's text without a bound: one word stands for all.
    counter("ratelimit.service.rate_limit.unknown.domain_not_found", counters.unknownDomainCount),
    counter(`ratelimit_server.${countedMethod}.total_requests`, callCount(sources)),
    ...storePools().flatMap(poolStats),
  ];
}

function poolStats({ name, counts }: StorePool): readonly Stat[] {
  const { openedCount, activeCount } = counts;
  return [
    { kind: "gauge", name: `ratelimit.${name}.cx_active`, value: activeCount },
    counter(`ratelimit.${name}.cx_total`, openedCount),
    counter(`ratelimit.${name}.cx_local_close`, openedCount - activeCount),
  ];
}

function counter(name: string, value: number): Stat {
  return { kind: "counter", name, value };
}
