import type { Charge } from "../../core/limits/bucket.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import type { RegionShare } from "../../core/limits/lending.js";
import { denialOf, type FailureMode, type Limit, type LimitKey } from "../../core/limits/limit.js";
import type { OverrideTable } from "../../core/limits/override-table.js";
import type { QuotaLimit, QuotaPoolSettings } from "../../core/quota/quota.js";
import type { Policy } from "../../policy/policy.js";
import type { DecisionCounters, RuleCounters } from "../rate-limit/counters.js";
import { type LimitCheck, type PrepareParts, prepareQuery } from "../rate-limit/prepared-query.js";
import type { LimitSwitches } from "../rate-limit/switches.js";
import type { WindowSource } from "../rate-limit/window-source.js";

interface ReachParts {
  readonly policy: Policy;
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

/** A limit with its charge. Enforced limits come first, then those that are only counted. */
interface ReachedLimit {
  readonly limit: Limit;
  readonly charge: Charge;
}

/** The limits that a bucket counts against. */
export interface QuotaReach {
  /** Equal exactly for buckets that share limits. Contains values of callers. */
  readonly identity: string;
  readonly mode: QuotaPoolSettings["mode"];
  /** The limits of the pool; `charged` starts with them. */
  readonly limits: readonly QuotaLimit[];
  readonly charged: readonly ReachedLimit[];
  /** The counters of the rule. Undefined if no rule matches the descriptor. */
  readonly counters: RuleCounters | undefined;
  /** What applies while the store is unavailable: the strictest mode of all limits. */
  readonly onStoreFailure: FailureMode;
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
  const query = { domain, descriptors: [{ entries, hits: 1, isRefund: false }] };
  const { policy, overrides, counters, switches, digest, region } = parts;
  const { nowMs, epochUs, windowSource } = parts;
  // Spelled out because spreads cost more than everything else in this file.
  const prepared = prepareQuery(query, {
    policy,
    overrides,
    counters,
    switches,
    digest,
    region,
    nowMs,
    epochUs,
    windowSource,
    records: noRecords,
    isKept: false,
    nameOf,
    newKeys: isOverflow ? noNewKeys : allNewKeys,
  });
  const [met] = prepared.descriptors;
  const ruleCounters = met !== undefined && "counters" in met ? met.counters : undefined;
  if (met?.kind !== "limited") {
    return { ...unlimited, counters: ruleCounters, identity: descriptorIdentity(descriptor) };
  }
  const denying = prepared.asks.filter(({ charge }) => denialOf(charge.role) !== "shadow");
  const counted = prepared.asks.filter(({ charge }) => denialOf(charge.role) === "shadow");
  const identity = keysIdentity(prepared.asks.map(({ charge: { key } }) => key));
  const onStoreFailure = strictest(denying.length === 0 ? [] : denying);
  const isDenied = denying.some(({ limit }) => limit.hits === 0 || limit.burst === 0);
  const found = { identity, counters: ruleCounters, onStoreFailure };
  if (isDenied) return { ...found, mode: "denied", limits: [], charged: [] };
  const mode = denying.length === 0 ? "counted" : "limited";
  const charged = [...denying, ...counted].filter(({ limit }) => limit.hits > 0).map(settling);
  const limits = (denying.length === 0 ? charged : charged.slice(0, denying.length)).map(plain);
  return { identity, mode, limits, charged, counters: ruleCounters, onStoreFailure };
}

/** Identifies what buckets of these keys share. */
export function keysIdentity(keys: readonly LimitKey[]): string {
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
  onStoreFailure: "allow",
} as const satisfies Omit<QuotaReach, "identity" | "counters">;

/** Never equal to that of limits, which starts with a digit. */
function descriptorIdentity({ domain, entries }: ReachDescriptor): string {
  return JSON.stringify([domain, ...entries.map(({ key, value }) => [key, value])]);
}

function settling({ limit, charge }: LimitCheck): ReachedLimit {
  return { limit, charge: { ...charge, role: "settle" } };
}

/** Of a global limit, this region's part. Pools do not borrow. */
function plain({ charge: { hits, periodUs, burst } }: ReachedLimit): QuotaLimit {
  return { hits, periodUs, burst };
}

/** The strictest first. */
const strictness: readonly FailureMode[] = ["error", "deny", "local", "allow"];

function strictest(asks: readonly LimitCheck[]): FailureMode {
  const modes = asks.map(({ limit }) => limit.onStoreFailure);
  return strictness.find((mode) => modes.includes(mode)) ?? "allow";
}
