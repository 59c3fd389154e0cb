import type { ErrorCode } from "../../core/base/errors.js";
import type { FailureMode } from "../../core/limits/limit.js";
import type { Policy } from "../../policy/policy.js";
import type { NewKeyCount } from "./new-keys.js";

/**
 * Hits under one name. Plain integers, read when metrics are scraped.
 *
 * Source: the statistics of envoyproxy/ratelimit, `RateLimitStats`.
 */
export interface HitCounters {
  /** All requested hits, whatever the result. */
  total: number;
  /** Hits that did not fit. */
  over: number;
  /** Hits that fitted, above the near-limit ratio. */
  near: number;
  /** Hits that fitted. */
  within: number;
  /** Hits that did not fit a shadow limit, which denies nothing. */
  shadow: number;
  /** Hits in `over` that were denied from the cache, without a store call. */
  overFromMemory: number;
  /** Hits that were refunded. */
  refunded: number;
}

/**
 * Results of the descriptors that matched one rule. Plain integers, read when metrics are scraped.
 */
export interface RuleCounters {
  readonly domain: string;
  readonly label: string;
  /** Within the limits, or the rule has no limit. */
  ok: number;
  /** Within the limits after a delay (`over: delay`); not in `ok`. */
  delayed: number;
  /** Over an enforced limit. */
  over: number;
  /** Over a shadow limit only: allowed, but would have been denied. */
  shadowOver: number;
  readonly hits: HitCounters;
  /** New keys in the current second, and requests sent to the rule's shared bucket. */
  readonly newKeys: NewKeyCount;
}

/** Hits under a name that includes request values (`detailed_metric`, `value_to_metric`). */
interface DetailedHits {
  readonly rule: RuleCounters;
  /** The rule's path including the request's values, which a caller chooses. */
  readonly label: string;
  readonly hits: HitCounters;
}

/** Maximum number of names with request values. Further hits count under the rule's own name. */
export const detailedSeriesMax = 1_000;

/** Upper bounds of the latency histogram's buckets, in milliseconds. */
export const latencyBoundsMs: readonly number[] = [
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 50, 100, 1000,
];

/** Identifies a decision in a tracing system. */
export interface DecisionTrace {
  /** 32 lower-case hexadecimal digits. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits. */
  readonly spanId: string;
}

/** A decision whose trace is recorded, and how long it took. */
interface TracedDecision {
  readonly elapsedMs: number;
  readonly epochUs: number;
  readonly trace: DecisionTrace;
}

/** An example of the decisions in a bucket of the latency histogram. */
interface LatencyExemplar extends DecisionTrace {
  /** Milliseconds. */
  readonly value: number;
  /** Milliseconds since 1970. */
  readonly epochMs: number;
}

/** Counters of all decisions. The decider writes them; the metrics module reads them. */
export class DecisionCounters {
  readonly #byRule = new Map<string, RuleCounters>();
  #aligned: { readonly policy: Policy; readonly counters: readonly RuleCounters[] } | undefined;
  readonly #detailed = new Map<string, DetailedHits>();

  /** Answered requests, by overall code. */
  okCount = 0;
  deniedCount = 0;
  /** Descriptors without a matching rule in a known domain, and requests for an unknown domain. */
  unmatchedDescriptorCount = 0;
  unknownDomainCount = 0;
  /** Descriptors decided by a limit that the request carried. */
  overrideOkCount = 0;
  overrideOverCount = 0;
  /** Requests that passed only because the process denies nothing (`SHADOW_MODE`). */
  shadowedCount = 0;
  /** Requests denied from the cache, because the store had just denied the same. */
  refusedFromMemoryCount = 0;
  /** Batches sent to the store, with their requests and charges. Identical requests count once. */
  batchCount = 0;
  batchRequestCount = 0;
  batchChargeCount = 0;
  /** Requests that were combined with an identical one into a single store request. */
  coalescedCount = 0;
  /** Failed calls, by code. */
  readonly failedByCode = new Map<ErrorCode, number>();
  /** Charges decided without the store, by the limit's failure mode and by cause. */
  readonly fallbackByMode: Readonly<Record<FailureMode, Map<ErrorCode, number>>> = {
    local: new Map(),
    allow: new Map(),
    deny: new Map(),
    error: new Map(),
  };
  /** Failed store batches, by code. */
  readonly storeFailedByCode = new Map<ErrorCode, number>();
  /** Decision latency: one count per bound in `latencyBoundsMs`, and one above the last. */
  readonly latencyCounts: number[] = new Array<number>(latencyBoundsMs.length + 1).fill(0);
  latencySumMs = 0;
  /** By bucket, the last decision in it whose trace is recorded. Empty without tracing. */
  readonly latencyExemplars: (LatencyExemplar | undefined)[] = [];

  /**
   * The counters of a policy's rules, by rule index. A rule that survives a reload keeps its
   * counts.
   */
  forPolicy(policy: Policy): readonly RuleCounters[] {
    if (this.#aligned?.policy === policy) return this.#aligned.counters;
    const counters = policy.rules.map((rule) => {
      const id = `${rule.domain.length}:${rule.domain}${rule.label}`;
      const known = this.#byRule.get(id);
      if (known !== undefined) return known;
      const { domain, label } = rule;
      const newKeys = { secondMs: 0, count: 0, overflowCount: 0 };
      return {
        domain,
        label,
        ok: 0,
        delayed: 0,
        over: 0,
        shadowOver: 0,
        hits: createHits(),
        newKeys,
      };
    });
    // Drops rules that are not in the new policy, so their time series end.
    this.#byRule.clear();
    for (const one of counters)
      this.#byRule.set(`${one.domain.length}:${one.domain}${one.label}`, one);
    this.#aligned = { policy, counters };
    const rules = new Set(counters);
    for (const [id, { rule }] of this.#detailed) if (!rules.has(rule)) this.#detailed.delete(id);
    return counters;
  }

  /** Hits under names with request values; at most `detailedSeriesMax`. */
  get detailed(): Iterable<DetailedHits> {
    return this.#detailed.values();
  }

  /** The counters for this name, or the rule's own counters if there are too many names. */
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
    const index = latencyBucket(elapsedMs);
    this.latencyCounts[index] = (this.latencyCounts[index] ?? 0) + 1;
    this.latencySumMs += elapsedMs;
  }

  /** Keeps a counted decision as the example of its bucket, in place of the one before. */
  noteTrace({ elapsedMs, epochUs, trace }: TracedDecision): void {
    const { traceId, spanId } = trace;
    const epochMs = epochUs / 1_000;
    this.latencyExemplars[latencyBucket(elapsedMs)] = {
      traceId,
      spanId,
      value: elapsedMs,
      epochMs,
    };
  }
}

/** The index of the bucket that counts a decision. */
function latencyBucket(elapsedMs: number): number {
  let index = 0;
  while (index < latencyBoundsMs.length && elapsedMs > (latencyBoundsMs[index] ?? 0)) index += 1;
  return index;
}

function createHits(): HitCounters {
  return { total: 0, over: 0, near: 0, within: 0, shadow: 0, overFromMemory: 0, refunded: 0 };
}

function increment(counts: Map<ErrorCode, number>, code: ErrorCode): void {
  counts.set(code, (counts.get(code) ?? 0) + 1);
}
