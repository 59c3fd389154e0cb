import { ServiceError } from "../core/errors.js";
import { type Charge, isRepeatable } from "../core/gcra.js";
import {
  type KeyEntry,
  keyValueLengthMax,
  limitKey,
  overflowKey,
  overrideKey,
} from "../core/key.js";
import {
  drainTimeUsMax,
  type Limit,
  type LimitKey,
  type Rule,
  unitSeconds,
} from "../core/limit.js";
import type { Policy } from "../policy/policy.js";
import { requestChargesMax } from "../store/limit-store.js";
import { type CoalescingSlot, createSlot } from "./batcher.js";
import type { RuleCounters } from "./counters.js";
import type { KeyRecord, KeyRecords } from "./key-records.js";
import type { NewKeyGuard } from "./new-keys.js";
import type { DescriptorQuery, LimitOverride, RateLimitQuery } from "./query.js";

/** A limit that a query asks, with all that is known of it before the call. */
export interface PreparedAsk {
  readonly limit: Limit;
  /** Absent for a query that is not kept, as long as nothing is remembered of the key. */
  readonly record: KeyRecord | undefined;
  /** Which descriptor of the query it belongs to. */
  readonly descriptorIndex: number;
  /** For one hit. */
  readonly charge: Charge;
}

/** What one descriptor of a query meets, and where its limits stand among the asks. */
export type PreparedDescriptor =
  | { readonly kind: "unmatched" }
  | { readonly kind: "unlimited"; readonly counters: RuleCounters }
  | {
      readonly kind: "limited";
      /** Absent when the request carried the limit itself. */
      readonly counters?: RuleCounters;
      readonly firstAsk: number;
      readonly askCount: number;
    };

/**
 * A query matched against one policy, without its hits: what stays the same for all calls that ask
 * the same, so that it is worth keeping. Good for as long as the policy is in force.
 */
export interface PreparedQuery {
  readonly policy: Policy;
  readonly isDomainKnown: boolean;
  readonly descriptors: readonly PreparedDescriptor[];
  readonly asks: readonly PreparedAsk[];
  /** The asks' charges, for one hit each. */
  readonly charges: readonly Charge[];
  /** Whether identical calls may be decided together, and a refusal be remembered. */
  readonly isRepeatable: boolean;
  /** False when a flood of new keys sent it to a shared bucket: the next call may be luckier. */
  readonly isKeepable: boolean;
  /** Where identical calls of one turn meet. */
  readonly slot: CoalescingSlot;
}

/** What preparing needs besides the query. */
export interface PrepareParts {
  readonly policy: Policy;
  /** The counters of the policy's rules, by rule index. */
  readonly ruleCounters: readonly RuleCounters[];
  readonly records: KeyRecords;
  /** Whether the prepared query will be kept, and with it a record of each of its keys. */
  readonly isKept: boolean;
  readonly newKeys: NewKeyGuard;
  /** A strong hash of a text, in hexadecimal. */
  readonly digest: (text: string) => string;
  readonly nowMs: number;
}

/**
 * Matches each descriptor and finds its limits' buckets, in the query's order.
 *
 * Throws REQUEST_INVALID when there are more than `requestChargesMax` charges, or when a limit that
 * the request carries has a period above ten years.
 */
export function prepareQuery(query: RateLimitQuery, parts: PrepareParts): PreparedQuery {
  const { policy } = parts;
  const preparation = new Preparation(query, parts);
  const descriptors = preparation.descriptors();
  const { asks, isKeepable } = preparation;
  if (asks.length > requestChargesMax) {
    const detail = `It meets ${asks.length} limits, and the most is ${requestChargesMax}.`;
    throw new ServiceError("REQUEST_INVALID", detail);
  }
  const charges = asks.map((ask) => ask.charge);
  return {
    policy,
    isDomainKnown: policy.domains.has(query.domain),
    descriptors,
    asks,
    charges,
    isRepeatable: isRepeatable(charges),
    isKeepable,
    slot: createSlot(),
  };
}

/** The asks of one query as they come together. */
class Preparation {
  readonly #query: RateLimitQuery;
  readonly #parts: PrepareParts;
  readonly asks: PreparedAsk[] = [];
  isKeepable = true;

  constructor(query: RateLimitQuery, parts: PrepareParts) {
    this.#query = query;
    this.#parts = parts;
  }

  descriptors(): readonly PreparedDescriptor[] {
    const tree = this.#parts.policy.domains.get(this.#query.domain);
    return this.#query.descriptors.map((descriptor, index): PreparedDescriptor => {
      if (tree === undefined) return { kind: "unmatched" };
      if (descriptor.override !== undefined) return this.#overridden(index, descriptor.override);
      const rule = tree.match(descriptor.entries);
      const counters = rule === undefined ? undefined : this.#parts.ruleCounters[rule.index];
      if (rule === undefined || counters === undefined) return { kind: "unmatched" };
      if (rule.effect.kind === "none") return { kind: "unmatched" };
      if (rule.effect.kind === "unlimited") return { kind: "unlimited", counters };
      return this.#limited({ index, rule, limits: rule.effect.limits, counters });
    });
  }

  #overridden(index: number, override: LimitOverride): PreparedDescriptor {
    const limit = overrideLimit(override);
    const key = overrideKey(this.#query.domain, this.#entries(index), limit);
    const firstAsk = this.asks.length;
    this.#ask({ index, limit, key });
    return { kind: "limited", firstAsk, askCount: 1 };
  }

  #limited({ index, rule, limits, counters }: Matched): PreparedDescriptor {
    const { newKeys, nowMs } = this.#parts;
    const { domain } = this.#query;
    const firstAsk = this.asks.length;
    const entries = this.#entries(index);
    let isOwn = true;
    for (const limit of limits) {
      let key = limitKey(domain, entries, limit);
      // The limits of one rule share the fate of the first: they are made and kept together.
      if (firstAsk === this.asks.length) isOwn = newKeys.admits(key, counters.newKeys, nowMs);
      if (!isOwn) key = overflowKey(domain, rule.path, limit);
      this.#ask({ index, limit, key });
    }
    if (!isOwn) this.isKeepable = false;
    return { kind: "limited", counters, firstAsk, askCount: limits.length };
  }

  #ask({ index, limit, key }: { index: number; limit: Limit; key: LimitKey }): void {
    const { records, isKept } = this.#parts;
    const isRefund = this.#query.descriptors[index]?.isRefund === true;
    this.asks.push({
      limit,
      record: isKept ? records.recordOf(key) : records.find(key),
      descriptorIndex: index,
      charge: {
        key,
        hits: limit.hits,
        periodUs: limit.periodUs,
        burst: limit.burst,
        cost: 1,
        role: limit.role,
        isRefund,
        peekExhausted: limit.peek === "exhausted",
      },
    });
  }

  /** The entries with a digest in place of each value that is too long for a key. */
  #entries(index: number): readonly KeyEntry[] {
    const { entries } = this.#query.descriptors[index] ?? noDescriptor;
    if (entries.every(({ value }) => value.length <= keyValueLengthMax)) return entries;
    return entries.map((entry) => {
      if (entry.value.length <= keyValueLengthMax) return entry;
      return { ...entry, digest: this.#parts.digest(entry.value) };
    });
  }
}

interface Matched {
  readonly index: number;
  readonly rule: Rule;
  readonly limits: readonly Limit[];
  readonly counters: RuleCounters;
}

const noDescriptor: DescriptorQuery = { entries: [], hits: 0, isRefund: false };

/** A limit as a request carries it: enforced, with a burst of one period's hits, without a name. */
function overrideLimit({ hits, unit, unitMultiplier }: LimitOverride): Limit {
  const periodUs = unitSeconds[unit] * unitMultiplier * 1_000_000;
  if (periodUs > drainTimeUsMax) {
    throw new ServiceError("REQUEST_INVALID", "A limit it carries has a period above ten years.");
  }
  return {
    hits,
    unit,
    unitMultiplier,
    periodUs,
    burst: hits,
    role: "enforce",
    peek: "debt",
    onStoreFailure: "local",
  };
}
