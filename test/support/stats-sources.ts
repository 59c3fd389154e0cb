import type { StatsSources } from "../../src/app/metrics/stats.js";
import type { RedisPool } from "../../src/app/store/redis-journal.js";
import { DecisionCounters, type HitCounters } from "../../src/decide/rate-limit/counters.js";
import type { Policy } from "../../src/policy/policy.js";
import { emptyPolicySize } from "../../src/policy/policy-size.js";
import { testLimit, testPolicy } from "./policies.js";

/** What statistics are read from, to be changed by a test. */
export interface TestSources extends StatsSources {
  readonly counters: DecisionCounters;
  policy: Policy | undefined;
  pools: readonly RedisPool[];
  /** Counts hits of the rule at that index. */
  count(rule: number, hits: Partial<HitCounters>): void;
  /** Counts hits of that rule under a name with callers' values. */
  countDetailed(rule: number, label: string, hits: Partial<HitCounters>): void;
}

/** A policy of `shop` with rules of one, two and three levels, that nobody has asked yet. */
export function createTestSources(): TestSources {
  const counters = new DecisionCounters();
  const sources: TestSources = {
    counters,
    policy: testPolicy([
      { path: ["user"], effect: [testLimit(5)] },
      { path: ["plan=free", "user"], effect: [testLimit(5)] },
      { path: ["plan=free", "user", "path=/a"], effect: [testLimit(5)] },
    ]),
    pools: [],
    policies: {
      current: () => sources.policy,
      status: { ...emptyPolicySize, domainCount: 1, ruleCount: 3, loadedCount: 2, refusedCount: 1 },
    },
    redisPools: () => sources.pools,
    count(rule, hits) {
      add(ruleCounters(sources, rule).hits, hits);
    },
    countDetailed(rule, label, hits) {
      add(counters.detailedHits(ruleCounters(sources, rule), label), hits);
    },
  };
  return sources;
}

function ruleCounters({ counters, policy }: TestSources, rule: number) {
  const found = policy && counters.forPolicy(policy)[rule];
  if (found === undefined) throw new Error(`no rule ${rule}`);
  return found;
}

function add(to: HitCounters, hits: Partial<HitCounters>): void {
  for (const [field, count] of Object.entries(hits)) {
    Reflect.set(to, field, Reflect.get(to, field) + count);
  }
}
