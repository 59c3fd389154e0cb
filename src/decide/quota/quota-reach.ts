import type { Charge } from "../../core/limits/bucket.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
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
  /** A strong hash of a text, in hexadecimal. */
  readonly digest: (text: string) => string;
  readonly nowMs: number;
  readonly epochUs: number;
  readonly windowSource: WindowSource;
}

/** A descriptor that buckets stand for. */
export interface ReachDescriptor {
  readonly domain: string;
  readonly entries: readonly DescriptorEntry[];
  /** Whether it shares what a flood of new keys shares. */
  readonly isOverflow: boolean;
}

/** A limit as it is charged: enforcing ones first, then those that are only counted. */
interface ReachedLimit {
  readonly limit: Limit;
  readonly charge: Charge;
}

/** What a bucket reaches. */
export interface QuotaReach {
  /** The same for buckets that share limits, and for no others; callers' values are in it. */
  readonly identity: string;
  readonly mode: QuotaPoolSettings["mode"];
  /** The limits that a pool goes by; `charged` begins with them. */
  readonly limits: readonly QuotaLimit[];
  readonly charged: readonly ReachedLimit[];
  /** Where the rule counts what is asked of it; undefined: no rule meets the descriptor. */
  readonly counters: RuleCounters | undefined;
  /** What holds while the store is away: of several limits the strictest. */
  readonly onStoreFailure: FailureMode;
}

/**
 * The limits that a descriptor meets under the policy and the active overrides, as a call would.
 * What Envoys have let pass is charged whatever the limits say, so each is asked to settle; limits
 * of `quota` deny here by themselves. None counts in windows: a policy with such is refused.
 *
 * @throws ServiceError REQUEST_INVALID: more limits than one request may have
 */
export function findReach(descriptor: ReachDescriptor, parts: ReachParts): QuotaReach {
  const { domain, entries, isOverflow } = descriptor;
  const query = { domain, descriptors: [{ entries, hits: 1, isRefund: false }] };
  const prepared = prepareQuery(query, {
    ...parts,
    records: noRecords,
    isKept: false,
    nameOf: (key) => key,
    newKeys: { admits: () => !isOverflow, admitsSize: () => true },
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
  const found = { identity, onStoreFailure, counters: ruleCounters };
  if (isDenied) return { ...found, mode: "denied", limits: [], charged: [] };
  const mode = denying.length === 0 ? "counted" : "limited";
  const charged = [...denying, ...counted].filter(({ limit }) => limit.hits > 0).map(settling);
  const limits = (denying.length === 0 ? charged : charged.slice(0, denying.length)).map(plain);
  return { ...found, mode, limits, charged };
}

/** What buckets of these keys share. */
export function keysIdentity(keys: readonly LimitKey[]): string {
  return keys.map((key) => `${key.length}:${key}`).join("");
}

/** Nothing is remembered of a bucket's keys: Envoys ask for none of them. */
const noRecords: PrepareParts["records"] = {
  find: () => undefined,
  recordOf: () => ({ seen: undefined }),
};

const unlimited = {
  mode: "unlimited",
  limits: [],
  charged: [],
  onStoreFailure: "allow",
} as const satisfies Omit<QuotaReach, "identity" | "counters">;

/** Never that of limits, which begins with a number. */
function descriptorIdentity({ domain, entries }: ReachDescriptor): string {
  return JSON.stringify([domain, ...entries.map(({ key, value }) => [key, value])]);
}

function settling({ limit, charge }: LimitCheck): ReachedLimit {
  return { limit, charge: { ...charge, role: "settle" } };
}

function plain({ limit: { hits, periodUs, burst } }: ReachedLimit): QuotaLimit {
  return { hits, periodUs, burst };
}

/** The strictest first. */
const strictness: readonly FailureMode[] = ["error", "deny", "local", "allow"];

function strictest(asks: readonly LimitCheck[]): FailureMode {
  const modes = asks.map(({ limit }) => limit.onStoreFailure);
  return strictness.find((mode) => modes.includes(mode)) ?? "allow";
}
