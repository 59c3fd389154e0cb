import type { ErrorCode } from "../../core/base/errors.js";
import type { FailureMode } from "../../core/limits/limit.js";
import type { Policy } from "../../policy/policy.js";
import type { NewKeyCount } from "./new-keys.js";

/**
 * Hits that were asked under one name. Plain integers: read them when scraped.
 *
 * Source: the statistics of envoyproxy/ratelimit, `RateLimitStats`.
 */
export interface HitCounters {
  /** All that were asked for, whatever became of them. */
  total: number;
  /** Asked while they did not fit. */
  over: number;
  /** Of those that fitted, the ones above the near-limit ratio. */
  near: number;
  /** Fitted. */
  within: number;
  /** Did not fit under a limit that refuses nobody. */
  shadow: number;
  /** Of those over, the ones that were refused from memory, without asking the store. */
  overFromMemory: number;
  /** Given back. */
  refunded: number;
}

/** What happened to the descriptors that met one rule. Plain integers: read them when scraped. */
export interface RuleCounters {
  readonly domain: string;
  readonly label: string;
  /** Fitted, or met no limit. */
  ok: number;
  /** Over a limit that counts. */
  over: number;
  /** Over a shadow limit only: passed, and would not have. */
  shadowOver: number;
  readonly hits: HitCounters;
  /** New keys of the running second, and what was sent to the rule's shared bucket. */
  readonly newKeys: NewKeyCount;
}

/** Hits under a name that holds values of requests (`detailed_metric`, `value_to_metric`). */
interface DetailedHits {
  readonly rule: RuleCounters;
  /** The rule's path with the request's values in it: a caller's text. */
  readonly label: string;
  readonly hits: HitCounters;
}

/** The most names with values of requests in them; beyond, hits count under the rule's own name. */
export const detailedSeriesMax = 1_000;

/** Upper bounds of the latency buckets, in milliseconds. */
export const latencyBoundsMs: readonly number[] = [
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 50, 100, 1000,
];

/** Counts of everything that is decided. One owner: the decider; the metrics module reads it. */
export class DecisionCounters {
  readonly #byRule = new Map<string, RuleCounters>();
  #aligned: { readonly policy: Policy; readonly counters: readonly RuleCounters[] } | undefined;
  readonly #detailed = new Map<string, DetailedHits>();

  /** Requests answered, by overall code. */
  okCount = 0;
  deniedCount = 0;
  /** Descriptors that met no rule of a known domain, and requests for a domain without policy. */
  unmatchedDescriptorCount = 0;
  unknownDomainCount = 0;
  /** Descriptors decided by a limit that the request itself carried. */
  overrideOkCount = 0;
  overrideOverCount = 0;
  /** Requests that passed only because nobody is refused (`SHADOW_MODE`). */
  shadowedCount = 0;
  /** Requests denied without asking the store, which had refused the same a moment ago. */
  refusedFromMemoryCount = 0;
  /** Batches sent to the store, the requests and the charges in them, identical ones once. */
  batchCount = 0;
  batchRequestCount = 0;
  batchChargeCount = 0;
  /** Requests decided together with an identical one, which was sent for both. */
  coalescedCount = 0;
  /** Calls that failed, by code. */
  readonly failedByCode = new Map<ErrorCode, number>();
  /** Charges answered without the store, by the limit's failure mode and the cause. */
  readonly fallbackByMode: Readonly<Record<FailureMode, Map<ErrorCode, number>>> = {
    local: new Map(),
    allow: new Map(),
    deny: new Map(),
    error: new Map(),
  };
  /** Store batches that failed, by code. */
  readonly storeFailedByCode = new Map<ErrorCode, number>();
  /** Decision times: one count a bound of `latencyBoundsMs`, and one above the last. */
  readonly latencyCounts: number[] = new Array<number>(latencyBoundsMs.length + 1).fill(0);
  latencySumMs = 0;

  /**
   * The counters of a policy's rules, by rule index; a rule kept over a reload keeps its counts.
   */
  forPolicy(policy: Policy): readonly RuleCounters[] {
    if (this.#aligned?.policy === policy) return this.#aligned.counters;
    const counters = policy.rules.map((rule) => {
      const id = `${rule.domain.length}:${rule.domain}${rule.label}`;
      const known = this.#byRule.get(id);
      if (known !== undefined) return known;
      const { domain, label } = rule;
      const newKeys = { secondMs: 0, count: 0, overflowCount: 0 };
      return { domain, label, ok: 0, over: 0, shadowOver: 0, hits: createHits(), newKeys };
    });
    // What the new policy no longer holds is dropped: the series of a rule end with the rule.
    this.#byRule.clear();
    for (const one of counters)
      this.#byRule.set(`${one.domain.length}:${one.domain}${one.label}`, one);
    this.#aligned = { policy, counters };
    const rules = new Set(counters);
    for (const [id, { rule }] of this.#detailed) if (!rules.has(rule)) this.#detailed.delete(id);
    return counters;
  }

  /** Hits under names with values of requests in them; at most `detailedSeriesMax`. */
  get detailed(): Iterable<DetailedHits> {
    return this.#detailed.values();
  }

  /** Where a rule's hits are counted under that name; under its own when there are too many. */
  detailedHits(rule: RuleCounters, label: string): HitCounters {
    const id = `${rule.domain.length}:${rule.domain}${rule.label.length}:${rule.label}${label}`;
    const known = this.#detailed.get(id);
    if (known !== undefined) return known.hits;
    if (this.#detailed.size >= detailedSeriesMax) return rule.hits;
    const hits = createHits();
    this.#detailed.set(id, { rule, label, hits });
    return hits;
  }

  countFailure(code: ErrorCode): void {
    increment(this.failedByCode, code);
  }

  countStoreFailure(code: ErrorCode): void {
    increment(this.storeFailedByCode, code);
  }

  countFallback(mode: FailureMode, code: ErrorCode): void {
    increment(this.fallbackByMode[mode], code);
  }

  countLatency(elapsedMs: number): void {
    let index = 0;
    while (index < latencyBoundsMs.length && elapsedMs > (latencyBoundsMs[index] ?? 0)) index += 1;
    this.latencyCounts[index] = (this.latencyCounts[index] ?? 0) + 1;
    this.latencySumMs += elapsedMs;
  }
}

function createHits(): HitCounters {
  return { total: 0, over: 0, near: 0, within: 0, shadow: 0, overFromMemory: 0, refunded: 0 };
}

function increment(counts: Map<ErrorCode, number>, code: ErrorCode): void {
  counts.set(code, (counts.get(code) ?? 0) + 1);
}
