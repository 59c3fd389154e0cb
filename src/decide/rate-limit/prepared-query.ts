import { ServiceError } from "../../core/base/errors.js";
import { cutText } from "../../core/base/text.js";
import { type Charge, mayDelay } from "../../core/limits/bucket.js";
import { isPlainRequest, isRepeatable } from "../../core/limits/gcra.js";
import {
  type DescriptorEntry,
  type KeyEntry,
  keyValueLengthMax,
  limitKey,
  overflowKey,
  overrideKey,
  sizedKey,
} from "../../core/limits/key.js";
import { type RegionShare, regionalCharge } from "../../core/limits/lending.js";
import {
  drainTimeUsMax,
  type Limit,
  type LimitDefaults,
  type LimitKey,
  type Rule,
  unitSeconds,
} from "../../core/limits/limit.js";
import type { OverrideTable } from "../../core/limits/override-table.js";
import { isMarking } from "../../core/limits/request-marks.js";
import type { Window } from "../../core/limits/window.js";
import type { Policy } from "../../policy/policy.js";
import { requestChargesMax } from "../../store/limit-store.js";
import { type CoalescingSlot, createSlot } from "./batcher.js";
import type { DecisionCounters, HitCounters, RuleCounters } from "./counters.js";
import type { KeyRecord, KeyRecords } from "./key-records.js";
import type { NewKeyGuard } from "./new-keys.js";
import type { DescriptorQuery, LimitOverride, RateLimitQuery } from "./query.js";
import { type LimitSwitches, switchedRole } from "./switches.js";
import { commonWindow, type WindowSource } from "./window-source.js";

/** One limit of a query, with everything that is known before the call. */
export interface LimitCheck {
  readonly limit: Limit;
  /** Absent as long as there is no record of the key and the query did not create one. */
  record: KeyRecord | undefined;
  /** The index of its descriptor in the query. */
  readonly descriptorIndex: number;
  /** For one hit. Replaced when its window ends. */
  charge: Charge;
}

/**
 * The rule and limits that one descriptor of a query matches, and where these limits are in `asks`.
 */
export type PreparedDescriptor =
  | { readonly kind: "unmatched" }
  /** Another rule replaces all limits of this rule (`replaces`). */
  | { readonly kind: "replaced"; readonly rule: Rule }
  | {
      readonly kind: "unlimited";
      readonly rule: Rule;
      readonly counters: RuleCounters;
      readonly hits: HitCounters;
    }
  | {
      readonly kind: "limited";
      /** Absent, like its counters, if the request carried the limit. */
      readonly rule?: Rule;
      readonly counters?: RuleCounters;
      readonly hits?: HitCounters;
      readonly firstAsk: number;
      readonly askCount: number;
    };

/**
 * A query matched against one policy, without its hits: what identical calls have in common, which
 * makes it worth caching. Valid as long as the policy is active.
 */
export interface PreparedQuery {
  readonly policy: Policy;
  readonly overrides: OverrideTable;
  readonly peekedRules: ReadonlySet<Rule>;
  readonly isDomainKnown: boolean;
  /** Whether no request is denied, whatever the result. */
  readonly isShadow: boolean;
  readonly descriptors: readonly PreparedDescriptor[];
  readonly asks: readonly LimitCheck[];
  /** The charges of `asks`, for one hit each. */
  charges: readonly Charge[];
  /** When the charges of window limits expire. Source: `WindowSource.renew`. */
  window: Window | undefined;
  /** Maximum delay of a request (`over: delay`), in microseconds. 0: it is not delayed. */
  readonly delayUs: number;
  /** Whether identical calls may be combined. */
  readonly isRepeatable: boolean;
  /** Whether a denial may be cached. */
  readonly isPlain: boolean;
  /**
   * False if a flood of new keys sent the query to a shared bucket. The next call may get its own.
   */
  readonly isKeepable: boolean;
  /** Combines identical calls of one event loop turn. */
  readonly slot: CoalescingSlot;
  /** Whether a matched rule defines what responses contain. */
  readonly isStyled: boolean;
  /** Whether a matched limit may change a request that passes; see `RequestMarks`. */
  readonly isMarking: boolean;
  /** Whether a matched limit is divided among regions. */
  readonly isGlobal: boolean;
}

/** The approximate size of a query, with the records of its keys, in bytes. */
export function preparedBytes({ descriptors, asks }: PreparedQuery): number {
  let bytes = 500 + 100 * descriptors.length;
  for (const { charge } of asks) bytes += 400 + 2 * charge.key.length;
  return bytes;
}

/** The inputs of `prepareQuery` besides the query. */
export interface PrepareParts {
  readonly policy: Policy;
  /** The operators' overrides of keys. */
  readonly overrides: OverrideTable;
  /** Rules that settle because a call has peeked at them. Default: none. */
  readonly peekedRules?: ReadonlySet<Rule>;
  readonly counters: DecisionCounters;
  readonly switches: LimitSwitches;
  readonly records: Pick<KeyRecords, "find" | "recordOf">;
  /** Whether the prepared query will be cached, together with a record for each of its keys. */
  readonly isKept: boolean;
  /** The name of a key's bucket in the store. */
  readonly nameOf: (key: LimitKey) => LimitKey;
  readonly newKeys: Pick<NewKeyGuard, "admits" | "admitsSize">;
  /** A cryptographic hash in hexadecimal. */
  readonly digest: (text: string) => string;
  readonly nowMs: number;
  readonly windowSource: WindowSource;
  /** This region among those that share global limits. Absent: limits are not divided. */
  readonly region?: RegionShare | undefined;
  /** The wall clock, in microseconds since 1970. */
  readonly epochUs: number;
}

/**
 * Matches each descriptor and looks up the buckets of its limits, in the query's order.
 *
 * @throws ServiceError REQUEST_TOO_LARGE for more than `requestChargesMax` charges, REQUEST_INVALID
 *   for a limit that the request carries with a period above ten years
 */
export function prepareQuery(query: RateLimitQuery, parts: PrepareParts): PreparedQuery {
  const { policy, overrides, peekedRules = noRules } = parts;
  const preparation = new Preparation(query, parts);
  const descriptors = preparation.descriptors();
  const { asks, isKeepable } = preparation;
  if (asks.length > requestChargesMax) {
    const detail = `It matches ${asks.length} limits; ${requestChargesMax} are allowed.`;
    throw new ServiceError("REQUEST_TOO_LARGE", detail);
  }
  const delayUs = query.canDelay === true ? allowDelay(asks) : 0;
  const charges = asks.map((ask) => ask.charge);
  return {
    policy,
    overrides,
    peekedRules,
    isDomainKnown: query.isOwn === true || policy.domains.has(query.domain),
    isShadow: parts.switches.isShadow,
    descriptors,
    asks,
    charges,
    window: commonWindow(charges),
    delayUs,
    isRepeatable: isRepeatable(charges),
    isPlain: isPlainRequest(charges),
    isKeepable,
    slot: createSlot(),
    isStyled: descriptors.some(isStyled),
    isMarking: asks.some(({ limit }) => isMarking(limit)),
    isGlobal: parts.region !== undefined && asks.some(({ limit }) => limit.spread === "global"),
  };
}

const noRules: ReadonlySet<Rule> = new Set();

/**
 * Allows the charges of limits with `over: delay` to delay the request, all by the shortest maximum
 * among them, and returns that time. A request that charges one key twice is not delayed, because
 * more than the burst of that key could then pass at once.
 */
function allowDelay(asks: readonly LimitCheck[]): number {
  const delaying = asks.filter(({ limit, charge }) => heldMsMax(limit) > 0 && mayDelay(charge));
  if (delaying.length === 0) return 0;
  if (new Set(asks.map(({ charge }) => charge.key)).size < asks.length) return 0;
  const delayUs = 1_000 * Math.min(...delaying.map(({ limit }) => heldMsMax(limit)));
  for (const ask of delaying) ask.charge = { ...ask.charge, delayUs };
  return delayUs;
}

function heldMsMax({ over }: Limit): number {
  return over?.kind === "delay" ? over.maxMs : 0;
}

/**
 * Returns the rules that settle from now on, because these charges are the first to peek at them.
 */
export function newlyPeekedRules(
  { asks, descriptors, peekedRules }: PreparedQuery,
  charges: readonly Charge[],
): readonly Rule[] {
  return charges.flatMap(({ cost }, i): readonly Rule[] => {
    const descriptor = cost === 0 ? descriptors[asks[i]?.descriptorIndex ?? -1] : undefined;
    if (descriptor?.kind !== "limited" || descriptor.rule?.settlesOncePeeked !== true) return [];
    return peekedRules.has(descriptor.rule) ? [] : [descriptor.rule];
  });
}

function isStyled(descriptor: PreparedDescriptor): boolean {
  if (descriptor.kind !== "limited") return false;
  return descriptor.rule?.headers !== undefined || descriptor.rule?.body !== undefined;
}

/** Collects the checks of one query. */
class Preparation {
  readonly #query: RateLimitQuery;
  readonly #parts: PrepareParts;
  readonly asks: LimitCheck[] = [];
  isKeepable = true;

  constructor(query: RateLimitQuery, parts: PrepareParts) {
    this.#query = query;
    this.#parts = parts;
  }

  descriptors(): readonly PreparedDescriptor[] {
    const { policy } = this.#parts;
    const tree = policy.domains.get(this.#query.domain);
    if (tree === undefined && this.#query.isOwn !== true) {
      return this.#query.descriptors.map(() => unmatched);
    }
    const rules = this.#query.descriptors.map(({ override, entries }) =>
      override === undefined ? tree?.match(entries) : undefined,
    );
    const replaced = replacedNames(rules);
    return this.#query.descriptors.map(({ override }, index): PreparedDescriptor => {
      if (override !== undefined) return this.#overridden(index, override);
      const rule = rules[index];
      return rule === undefined ? unmatched : this.#matched(index, { rule, replaced });
    });
  }

  #matched(
    index: number,
    { rule, replaced }: { readonly rule: Rule; readonly replaced: ReadonlySet<string> },
  ): PreparedDescriptor {
    const { policy, counters } = this.#parts;
    const ruleCounters = counters.forPolicy(policy)[rule.index];
    if (ruleCounters === undefined || rule.effect.kind === "none") return unmatched;
    const label = metricLabel(rule, this.#query.descriptors[index] ?? noDescriptor);
    const hits =
      label === undefined ? ruleCounters.hits : counters.detailedHits(ruleCounters, label);
    if (rule.effect.kind === "unlimited") {
      return { kind: "unlimited", rule, counters: ruleCounters, hits };
    }
    const { limits } = rule.effect;
    const counting =
      replaced.size === 0
        ? limits
        : limits.filter(({ name }) => name === undefined || !replaced.has(name));
    if (counting.length === 0) return { kind: "replaced", rule };
    const firstAsk = this.asks.length;
    this.#askLimits(index, { rule, limits: counting, counters: ruleCounters });
    const askCount = counting.length;
    return { kind: "limited", rule, counters: ruleCounters, hits, firstAsk, askCount };
  }

  #overridden(index: number, override: LimitOverride): PreparedDescriptor {
    const limit = overrideLimit(override, this.#parts.switches.defaults);
    const shared = overrideKey(this.#query.domain, this.#entries(index), limit);
    const firstAsk = this.asks.length;
    this.#ask({ index, limit, ...this.#carriedKeys(shared, limit), isSettling: false });
    return { kind: "limited", firstAsk, askCount: 1 };
  }

  /** Limits of different sizes drain at different rates, so each has its own bucket. */
  #carriedKeys(shared: LimitKey, limit: Limit): Pick<Charge, "key" | "lastKey"> {
    const { newKeys, nowMs, nameOf } = this.#parts;
    // A fixed window does not drain before its end, so all sizes count in one bucket.
    if (limit.algorithm?.kind === "fixed_window") return { key: shared };
    const isOwn = newKeys.admitsSize(shared, limit, nowMs);
    if (!isOwn) this.isKeepable = false;
    const key = sizedKey(shared, isOwn ? limit.hits : undefined);
    return { key, lastKey: nameOf(shared) };
  }

  #askLimits(index: number, { rule, limits, counters }: Matched): void {
    const { newKeys, nowMs, overrides } = this.#parts;
    const { domain } = this.#query;
    const asked = (this.#query.descriptors[index] ?? noDescriptor).entries;
    const firstAsk = this.asks.length;
    const entries = this.#entries(index, rule.sharePatterns);
    const isSettling = this.#parts.peekedRules?.has(rule) === true;
    let isOwn = true;
    for (const limit of limits) {
      let key = limitKey(domain, entries, limit);
      // The limits of one rule are new together, so the first one decides for all.
      if (firstAsk === this.asks.length) isOwn = newKeys.admits(key, counters.newKeys, nowMs);
      if (!isOwn) key = overflowKey(domain, rule.path, limit);
      // Overrides do not apply to the bucket that a flood shares.
      const override = isOwn ? overrides.find(domain, asked, limit.name) : undefined;
      const own = override === undefined ? limit : overrides.limits.limitOf(limit, override);
      this.#ask({ index, limit: own, key, isSettling });
    }
    if (!isOwn) this.isKeepable = false;
  }

  #ask({ index, limit, key: spelled, lastKey, isSettling }: AskedLimit): void {
    const { records, isKept, switches, windowSource, epochUs, nameOf, region } = this.#parts;
    const key = nameOf(spelled);
    const isRefund = this.#query.descriptors[index]?.isRefund === true;
    const whole: Charge = {
      key,
      hits: limit.hits,
      periodUs: limit.periodUs,
      burst: limit.burst,
      cost: 1,
      role: switchedRole(limit.role, switches, isSettling),
      isRefund,
      peekExhausted: limit.peek === "exhausted",
      windows: windowSource.windowsOf(limit, epochUs),
    };
    const isDivided = region !== undefined && limit.spread === "global";
    const charge = isDivided ? regionalCharge(whole, region) : whole;
    this.asks.push({
      limit,
      record: isKept ? records.recordOf(key) : records.find(key),
      descriptorIndex: index,
      // A field in the limit itself would cost 8 bytes for each limit of the policy.
      charge: lastKey === undefined ? charge : { ...charge, lastKey },
    });
  }

  #entries(index: number, sharePatterns?: readonly (string | undefined)[]): readonly KeyEntry[] {
    const { entries } = this.#query.descriptors[index] ?? noDescriptor;
    return keyEntries(entries, { sharePatterns, digest: this.#parts.digest });
  }
}

/**
 * The entries of a key. A value that is too long or is not valid text is replaced by its digest,
 * and values that share a bucket are replaced by their pattern.
 */
export function keyEntries(
  entries: readonly DescriptorEntry[],
  {
    sharePatterns,
    digest,
  }: Pick<PrepareParts, "digest"> & {
    readonly sharePatterns: readonly (string | undefined)[] | undefined;
  },
): readonly KeyEntry[] {
  const isPlain = sharePatterns === undefined;
  if (isPlain && entries.every(({ value }) => isNameable(value))) return entries;
  return entries.map((entry, i) => {
    const value = sharePatterns?.[i] ?? entry.value;
    if (isNameable(value)) return { key: entry.key, value };
    return { key: entry.key, value, digest: digest(value) };
  });
}

/** Whether a value can be part of a key as it is. Stores encode keys as UTF-8. */
function isNameable(value: string): boolean {
  return value.length <= keyValueLengthMax && value.isWellFormed();
}

interface AskedLimit {
  readonly index: number;
  readonly limit: Limit;
  readonly key: LimitKey;
  readonly lastKey?: LimitKey;
  /** Whether its rule settles because it was peeked at. */
  readonly isSettling: boolean;
}

interface Matched {
  readonly rule: Rule;
  readonly limits: readonly Limit[];
  readonly counters: RuleCounters;
}

const unmatched: PreparedDescriptor = { kind: "unmatched" };

/** The names of limits that the matched rules replace, for the whole request. */
function replacedNames(rules: readonly (Rule | undefined)[]): ReadonlySet<string> {
  let names: Set<string> | undefined;
  for (const rule of rules) {
    if (rule?.replaces === undefined) continue;
    names ??= new Set();
    for (const name of rule.replaces) names.add(name);
  }
  return names ?? noNames;
}

const noNames: ReadonlySet<string> = new Set();

/**
 * Maximum length of such a label, in UTF-16 code units. A longer one does not fit a StatsD packet.
 */
export const metricLabelLengthMax = 1_000;

/** The rule's name in metrics with the request's values. Undefined if it has none. */
function metricLabel({ metricPath }: Rule, { entries }: DescriptorQuery): string | undefined {
  if (metricPath === undefined) return undefined;
  const steps = metricPath.map((step, i) => {
    if (step.kind === "policy") return step.text;
    const { key, value } = entries[i] ?? { key: "", value: "" };
    return value === "" ? key : `${key}_${value}`;
  });
  // The name is kept as long as the policy, so its size must not be the caller's choice. Ill-formed
  // text is replaced because names are written as UTF-8, where two ill-formed names could become
  // equal.
  return cutText(steps.join("."), metricLabelLengthMax).toWellFormed();
}

const noDescriptor: DescriptorQuery = { entries: [], hits: 0, isRefund: false };

/** The limit that a request carries: enforced and unnamed. With its own burst, it drains. */
function overrideLimit(
  { hits, burst, unit, unitMultiplier }: LimitOverride,
  { algorithm, onStoreFailure }: LimitDefaults,
): Limit {
  const periodUs = unitSeconds[unit] * unitMultiplier * 1_000_000;
  if (periodUs > drainTimeUsMax) {
    throw new ServiceError(
      "REQUEST_INVALID",
      "It contains a limit with a period of more than ten years.",
    );
  }
  return {
    hits,
    unit,
    unitMultiplier,
    periodUs,
    burst: burst ?? hits,
    role: "enforce",
    peek: "debt",
    onStoreFailure,
    ...(algorithm === "gcra" || burst !== undefined ? {} : { algorithm: { kind: algorithm } }),
  };
}
