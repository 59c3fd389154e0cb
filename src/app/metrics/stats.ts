import type { DecisionCounters, HitCounters } from "../../decide/rate-limit/counters.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import { stepLabel } from "../../policy/limits/rule-list.js";
import { statText } from "../options/stats-names.js";
import type { PolicyStatus } from "../policy/active-policy.js";
import type { StorePool } from "../store/store-journal.js";

/** Sources of the statistics. */
export interface StatsSources {
  readonly counters: DecisionCounters;
  readonly policies: PolicySource & { readonly status: PolicyStatus };
  /** Connections to each server of the store. Empty with the embedded store. */
  readonly storePools: () => readonly StorePool[];
}

/** The current value of a statistic, with its name in envoyproxy/ratelimit. */
type Stat =
  | { readonly kind: "counter"; readonly name: string; readonly value: number }
  | { readonly kind: "gauge"; readonly name: string; readonly value: number };

/** Hits under one name, and the parts of the name. */
interface NamedHits {
  readonly domain: string;
  /** The levels of the path. One may be a caller's text, if the policy asks for it. */
  readonly steps: readonly string[];
  readonly hits: HitCounters;
}

/** The statistics of hits: the last part of their names, and their counters. */
export const hitStats = [
  { name: "total_hits", field: "total" },
  { name: "over_limit", field: "over" },
  { name: "near_limit", field: "near" },
  { name: "within_limit", field: "within" },
  { name: "shadow_mode", field: "shadow" },
  { name: "over_limit_with_local_cache", field: "overFromMemory" },
  { name: "total_negative_hits", field: "refunded" },
] as const satisfies readonly { readonly name: string; readonly field: keyof HitCounters }[];

/** Reports whether anything was counted. Unused rules, most of a large policy, are left out. */
export function hasHits({ total, refunded }: HitCounters): boolean {
  return total > 0 || refunded > 0;
}

/** Yields hits by name, of rules and of requests' values, if there were any. */
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

/** Returns the part of a name before `.total_hits` and the others. */
export function hitsPrefix({ domain, steps }: Omit<NamedHits, "hits">): string {
  return `ratelimit.service.rate_limit.${domain}.${steps.join(".")}`;
}

/** The only gRPC method that is counted. */
export const countedMethod = "ShouldRateLimit";

/** Returns the number of calls over gRPC and as JSON, including failed ones. */
export function callCount({ counters }: StatsSources): number {
  let count = counters.okCount + counters.deniedCount;
  for (const failed of counters.failedByCode.values()) count += failed;
  return count;
}

/** Returns the numbers of failed calls: because of the store, or for any other reason. */
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

/** Returns the statistics of the service as a whole. */
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
    // An unknown domain is unbounded text of a caller: one word stands for all of them.
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
