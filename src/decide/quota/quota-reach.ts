import type { Charge } from "../../core/limits/bucket.js";
import { type DescriptorEntry, limitKey } from "../../core/limits/key.js";
import type { RegionShare } from "../../core/limits/lending.js";
import {
  denialOf,
  type FailureMode,
  type Limit,
  type LimitKey,
  type Rule,
} from "../../core/limits/limit.js";
import type { OverrideTable } from "../../core/limits/override-table.js";
import type { QuotaLimit, QuotaPoolSettings } from "../../core/quota/quota.js";
import type { Policy } from "../../policy/policy.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import type { DecisionCounters, RuleCounters } from "../rate-limit/counters.js";
import {
  keyEntries,
  type LimitCheck,
  type PrepareParts,
  prepareQuery,
} from "../rate-limit/prepared-query.js";
import type { LimitSwitches } from "../rate-limit/switches.js";
import type { WindowSource } from "../rate-limit/window-source.js";

interface ReachParts {
  readonly policy: Policy;
  /** The plans of this policy's rules so far. New ones are added. */
  readonly plans: Map<Rule, QuotaPlan>;
  readonly overrides: OverrideTable;
  readonly counters: DecisionCounters;
  readonly switches: LimitSwitches;
  /** A cryptographic hash in hexadecimal. */
  readonly digest: (text: string) => string;
  /** This region among those that share global limits. Absent: limits are not divided. */
  readonly region?: RegionShare | undefined;
  readonly nowMs: number;
  readonly epochUs: number;
  readonly windowSource: WindowSource;
}

/** A descriptor that buckets represent. */
export interface ReachDescriptor {
  readonly domain: string;
  readonly entries: readonly DescriptorEntry[];
  /** Whether it shares the overflow bucket of a flood of new keys. */
  readonly isOverflow: boolean;
}

interface PlanParts {
  readonly mode: QuotaPoolSettings["mode"];
  /** The limits of the pool; `charged` starts with them. */
  readonly limits: readonly QuotaLimit[];
  /** Enforced limits first, then those that are only counted. Their keys are not used. */
  readonly charged: readonly Charge[];
  /** All limits that a descriptor matches, in the order of the rule. */
  readonly matched: readonly Limit[];
  /** The place of each element of `charged` in `matched`. */
  readonly places: readonly number[];
  /** The counters of the rule. Undefined if no rule matches the descriptor. */
  readonly counters: RuleCounters | undefined;
  /** Applies while the store is unavailable: the strictest mode of all limits but shadow limits. */
  readonly onStoreFailure: FailureMode;
}

/** What all buckets of one rule have in common: everything but their keys. */
export class QuotaPlan {
  readonly parts: PlanParts;
  #last: QuotaUse | undefined;

  constructor(parts: PlanParts) {
    this.parts = parts;
  }

  /** The use by one quota, the same object for all of its pools. */
  useOf(quota: QuotaPolicy): QuotaUse {
    if (this.#last?.quotas[0] !== quota) {
      const quotas = [quota];
      this.#last = { quotas, settings: poolSettings(this.parts, quotas) };
    }
    return this.#last;
  }
}

/** The quotas that use a pool, each name once, nearly always one; and what follows from them. */
export interface QuotaUse {
  readonly quotas: readonly QuotaPolicy[];
  readonly settings: QuotaPoolSettings;
}

/** With several quotas, the longest ttl and the largest share for calls apply. */
export function poolSettings(
  { mode, limits }: Pick<PlanParts, "mode" | "limits">,
  quotas: readonly QuotaPolicy[],
): QuotaPoolSettings {
  // If nothing is denied, no usage has to wait for room in the store.
  const isHeld = mode !== "counted";
  let ttlMs = 0;
  let callsShare = 0;
  for (const { ttlSeconds, callsShareRatio } of quotas) {
    ttlMs = Math.max(ttlMs, ttlSeconds * 1_000);
    if (isHeld) callsShare = Math.max(callsShare, callsShareRatio);
  }
  return { mode, limits, ttlMs, callsShare };
}

/** The limits that a bucket counts against. */
export class QuotaReach {
  /** Equal exactly for buckets that share limits. Contains values of callers. */
  readonly identity: string;
  readonly plan: QuotaPlan;
  readonly #firstKey: LimitKey | undefined;
  /** Keys of all charges. Undefined if there is at most one: a list takes 50 bytes. */
  readonly #keys: readonly LimitKey[] | undefined;

  constructor(identity: string, plan: QuotaPlan, keys: readonly LimitKey[]) {
    this.identity = identity;
    this.plan = plan;
    this.#firstKey = keys[0];
    this.#keys = keys.length > 1 ? keys : undefined;
  }

  get mode() {
    return this.plan.parts.mode;
  }

  get limits() {
    return this.plan.parts.limits;
  }

  get onStoreFailure() {
    return this.plan.parts.onStoreFailure;
  }

  get counters() {
    return this.plan.parts.counters;
  }

  /** The number of its charges. The first ones belong to `limits`. */
  get chargeCount(): number {
    return this.plan.parts.charged.length;
  }

  /** Returns the charges for this many admitted hits. */
  charges(cost: number): readonly Charge[] {
    return this.plan.parts.charged.flatMap(({ hits, periodUs, burst, peekExhausted }, i) => {
      const key = this.#keys?.[i] ?? this.#firstKey;
      if (key === undefined) return [];
      const isRefund = false;
      return { key, hits, periodUs, burst, cost, role: "settle", isRefund, peekExhausted };
    });
  }
}

/**
 * Returns the limits that a descriptor matches under the policy and the active overrides, as for a
 * call. Admitted hits are charged in any case, so each limit settles. Here, limits with `quota`
 * deny independently. None of the limits has windows: policy validation rejects them.
 *
 * @throws ServiceError REQUEST_INVALID: more limits than one request may have
 */
export function findReach(descriptor: ReachDescriptor, parts: ReachParts): QuotaReach {
  const { domain, entries, isOverflow } = descriptor;
  const { policy, overrides, plans, digest } = parts;
  const isPlain = !isOverflow && !overrides.concerns(domain);
  const rule = isPlain ? policy.domains.get(domain)?.match(entries) : undefined;
  const known = rule && plans.get(rule);
  if (rule === undefined || known === undefined) {
    const { plan, keys } = preparePlan(descriptor, parts);
    if (rule !== undefined) plans.set(rule, plan);
    return reachOf(descriptor, plan, keys);
  }
  const named = keyEntries(entries, { sharePatterns: rule.sharePatterns, digest });
  const keys = known.parts.matched.map((limit) => limitKey(domain, named, limit));
  return reachOf(descriptor, known, keys);
}

/** @param keys the keys of `matched` */
function reachOf(
  descriptor: ReachDescriptor,
  plan: QuotaPlan,
  keys: readonly LimitKey[],
): QuotaReach {
  const identity = keys.length === 0 ? descriptorIdentity(descriptor) : keysIdentity(keys);
  const charged = plan.parts.places.flatMap((place) => keys[place] ?? []);
  return new QuotaReach(identity, plan, charged);
}

/** Matches a descriptor like that of a call. */
function preparePlan(
  { domain, entries, isOverflow }: ReachDescriptor,
  parts: ReachParts,
): { readonly plan: QuotaPlan; readonly keys: readonly LimitKey[] } {
  const { asks, descriptors } = prepareQuery(
    { domain, descriptors: [{ entries, hits: 1, isRefund: false }] },
    {
      ...parts,
      records: noRecords,
      isKept: false,
      nameOf,
      newKeys: isOverflow ? noNewKeys : allNewKeys,
    },
  );
  const [met] = descriptors;
  const counters = met !== undefined && "counters" in met ? met.counters : undefined;
  if (met?.kind !== "limited") {
    return { plan: new QuotaPlan({ ...unlimited, counters }), keys: [] };
  }
  const denying = asks.filter(({ charge }) => denialOf(charge.role) !== "shadow");
  const counted = asks.filter(({ charge }) => denialOf(charge.role) === "shadow");
  const isDenied = denying.some(({ limit }) => limit.hits === 0 || limit.burst === 0);
  const reached = [...denying, ...counted].filter(({ limit }) => !isDenied && limit.hits > 0);
  const charged = reached.map(({ charge }) => charge);
  const mode = isDenied ? "denied" : denying.length === 0 ? "counted" : "limited";
  const limits = (mode === "limited" ? charged.slice(0, denying.length) : charged).map(plain);
  const onStoreFailure = strictest(denying);
  const matched = asks.map(({ limit }) => limit);
  const places = reached.map((ask) => asks.indexOf(ask));
  const plan = { mode, limits, charged, matched, places, counters, onStoreFailure } as const;
  return { plan: new QuotaPlan(plan), keys: asks.map(({ charge: { key } }) => key) };
}

/**
 * Identifies what buckets with these keys share. A single key identifies itself: it never equals
 * the start of a list of lengths and keys, because its second character is a letter.
 */
export function keysIdentity(keys: readonly LimitKey[]): string {
  const [first] = keys;
  if (first !== undefined && keys.length === 1) return first;
  return keys.map((key) => `${key.length}:${key}`).join("");
}
/** No records are kept, because Envoys do not send requests for these keys. */
const noRecords: PrepareParts["records"] = {
  find: () => undefined,
  recordOf: () => ({ seen: undefined }),
};

const nameOf: PrepareParts["nameOf"] = (key) => key;

const allNewKeys: PrepareParts["newKeys"] = { admits: () => true, admitsSize: () => true };

const noNewKeys: PrepareParts["newKeys"] = { admits: () => false, admitsSize: () => true };

const unlimited = {
  mode: "unlimited",
  limits: [],
  charged: [],
  matched: [],
  places: [],
  onStoreFailure: "allow",
} as const satisfies Omit<PlanParts, "counters">;

/** Never equals an identity of limits, which starts with a digit. */
function descriptorIdentity({ domain, entries }: ReachDescriptor): string {
  return JSON.stringify([domain, ...entries.map(({ key, value }) => [key, value])]);
}

/** The size of a limit; for a global limit, this region's part. Pools do not borrow. */
function plain({ hits, periodUs, burst }: Charge): QuotaLimit {
  return { hits, periodUs, burst };
}

/** The strictest first. */
const strictness: readonly FailureMode[] = ["error", "deny", "local", "allow"];

function strictest(asks: readonly LimitCheck[]): FailureMode {
  const modes = asks.map(({ limit }) => limit.onStoreFailure);
  return strictness.find((mode) => modes.includes(mode)) ?? "allow";
}
