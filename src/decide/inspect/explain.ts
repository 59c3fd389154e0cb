import {
  type Bucket,
  bucketTimeToFullUs,
  levelAt,
  pastBucket,
  remainingHits,
  retryAfterUs,
  unitsPerHit,
} from "../../core/limits/bucket.js";
import { type BucketTable, decideRequest } from "../../core/limits/gcra.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import type { RegionShare } from "../../core/limits/lending.js";
import { denialOf, type Limit, type LimitKey, type Rule } from "../../core/limits/limit.js";
import { reportMatch, type TriedRule } from "../../core/limits/match-report.js";
import type { Override } from "../../core/limits/override.js";
import type { OverrideTable } from "../../core/limits/override-table.js";
import type { RequestMarks } from "../../core/limits/request-marks.js";
import type { Policy } from "../../policy/policy.js";
import type { StoredBucket } from "../../store/limit-store.js";
import { present } from "../rate-limit/answers.js";
import { DecisionCounters } from "../rate-limit/counters.js";
import { chargesFor } from "../rate-limit/decision.js";
import type { DecidedRequest } from "../rate-limit/decision-observer.js";
import { KeyRecords } from "../rate-limit/key-records.js";
import { NewKeyGuard } from "../rate-limit/new-keys.js";
import {
  type PreparedDescriptor,
  type PreparedQuery,
  prepareQuery,
} from "../rate-limit/prepared-query.js";
import type { RateLimitQuery } from "../rate-limit/query.js";
import type { LimitSwitches } from "../rate-limit/switches.js";
import { WindowSource } from "../rate-limit/window-source.js";

/** Why a call would pass or be denied now. */
export interface Explanation {
  readonly policyVersion: string;
  readonly isDomainKnown: boolean;
  readonly isDenied: boolean;
  /** How long its caller would delay it. Absent: not at all. */
  readonly delayUs?: number;
  /** What limits change about it, if it passes; undefined: nothing. */
  readonly marks?: RequestMarks | undefined;
  /** One per descriptor, in the order of the query. */
  readonly descriptors: readonly ExplainedDescriptor[];
}

/** What one descriptor matches. */
export interface ExplainedDescriptor {
  readonly entries: readonly DescriptorEntry[];
  readonly hits: number;
  /** The matched rule first, then rules that nearly match; at most `triedRulesMax`. */
  readonly tried: readonly TriedRule[];
  /** Label of the matched rule. Undefined: none. */
  readonly matched: string | undefined;
  /**
   * Result of the match: `limited` is charged; `replaced` is omitted in favour of another rule of
   * the request.
   */
  readonly effect: "unmatched" | "unlimited" | "replaced" | "limited";
  readonly isOver: boolean;
  readonly limits: readonly ExplainedLimit[];
  /** Time until the same call is answered differently, without other calls. Undefined: never. */
  readonly changesAfterUs: number | undefined;
}

/** One limit, and the current state of its bucket. */
export interface ExplainedLimit {
  /** The limit that applies now, with its override, and settling if it does by now. */
  readonly limit: Limit;
  /** Number of regions that a global limit is divided among. 1: there are none. */
  readonly regionCount: number;
  /** Burst of the bucket here: of a divided limit, this region's part. */
  readonly burst: number;
  readonly override: Override | undefined;
  readonly key: LimitKey;
  /** Hits in use, and how many more fit. */
  readonly usedHits: number;
  readonly remainingHits: number;
  readonly isOver: boolean;
  /** Time until the call fits. 0: it fits. Undefined: it never will. */
  readonly retryAfterUs: number | undefined;
  /** Time until nothing is in use. Undefined: it does not drain. */
  readonly fullAfterUs: number | undefined;
}

interface ExplainerParts {
  readonly switches: LimitSwitches;
  /** A cryptographic hash in hexadecimal. */
  readonly digest: (text: string) => string;
  /** Rules of a policy that settle because calls peeked at them. Absent if no call is known. */
  readonly peekedRules?: (policy: Policy) => ReadonlySet<Rule>;
  /** This region among all of them; undefined: there are none. */
  readonly region?: RegionShare | undefined;
}

/** Input of an explanation. */
export interface ExplainCall {
  readonly query: RateLimitQuery;
  readonly policy: Policy;
  readonly overrides: OverrideTable;
  /** Reads the current state of a bucket. */
  readonly peek: (key: LimitKey) => Promise<StoredBucket | undefined>;
  /** The current time in microseconds since 1970, if no bucket reports it. */
  readonly epochUs: number;
}

/**
 * Explains how a call is decided, without charging anything: with the same matching, algorithm and
 * answers as the `Decider`, on copies of the buckets. The state of this process alone (a cached
 * denial, a flood of new keys) is ignored.
 */
export class Explainer {
  readonly #parts: ExplainerParts;
  readonly #newKeys = new NewKeyGuard({ newKeysPerSecondMax: Number.POSITIVE_INFINITY });

  constructor(parts: ExplainerParts) {
    this.#parts = parts;
  }

  /**
   * @throws ServiceError REQUEST_INVALID, and STORE_ codes of `peek`
   */
  async explain(call: ExplainCall): Promise<Explanation> {
    const { query, policy } = call;
    const prepared = this.#prepare(call);
    const regionCount = this.#parts.region?.count ?? 1;
    const buckets = await readBuckets(prepared, call.peek);
    const nowUs = buckets.nowUs ?? call.epochUs;
    const hits = query.descriptors.map((descriptor) => descriptor.hits);
    const charges = chargesFor(prepared, hits);
    const table: BucketTable = { get: (key) => buckets.byKey.get(key), set() {}, delete() {} };
    const { isDenied, results } = decideRequest(charges, table, nowUs);
    const request: DecidedRequest = { isDenied, charges, results, nowUs, isFromMemory: false };
    const verdict = present(prepared, request);
    return {
      policyVersion: policy.version,
      isDomainKnown: prepared.isDomainKnown,
      isDenied: verdict.isDenied,
      ...(verdict.delayUs === undefined ? {} : { delayUs: verdict.delayUs }),
      ...(verdict.marks === undefined ? {} : { marks: verdict.marks }),
      descriptors: prepared.descriptors.map((descriptor, index) => {
        const isOver = verdict.statuses[index]?.isOver === true;
        const about = { descriptor, index, isOver, prepared, request, buckets, call };
        return explainDescriptor({ ...about, regionCount });
      }),
    };
  }

  #prepare({ query, policy, overrides, epochUs }: ExplainCall) {
    const { switches, digest, peekedRules, region } = this.#parts;
    return prepareQuery(query, {
      policy,
      overrides,
      switches,
      digest,
      peekedRules: peekedRules?.(policy) ?? new Set(),
      // Separate counters: explanations are not counted.
      counters: new DecisionCounters(),
      records: new KeyRecords(0),
      isKept: false,
      nameOf: (key) => key,
      newKeys: this.#newKeys,
      nowMs: 0,
      windowSource: new WindowSource(),
      region,
      epochUs,
    });
  }
}

/** Buckets as read, and the store's time of the read. */
interface ReadBuckets {
  readonly byKey: ReadonlyMap<LimitKey, Bucket>;
  readonly nowUs: number | undefined;
}

async function readBuckets(
  { charges }: PreparedQuery,
  peek: ExplainCall["peek"],
): Promise<ReadBuckets> {
  const byKey = new Map<LimitKey, Bucket>();
  let nowUs: number | undefined;
  const keys = [...new Set(charges.flatMap(({ key, lastKey = key }) => [key, lastKey]))];
  const found = await Promise.all(keys.map((key) => peek(key)));
  found.forEach((stored, i) => {
    const key = keys[i];
    if (stored === undefined || key === undefined) return;
    byKey.set(key, stored.bucket);
    nowUs = Math.max(nowUs ?? 0, stored.nowUs);
  });
  return { byKey, nowUs };
}

interface Explaining {
  readonly descriptor: PreparedDescriptor;
  readonly index: number;
  readonly isOver: boolean;
  readonly prepared: PreparedQuery;
  readonly request: DecidedRequest;
  readonly buckets: ReadBuckets;
  readonly call: ExplainCall;
  readonly regionCount: number;
}

function explainDescriptor(explaining: Explaining): ExplainedDescriptor {
  const { descriptor, index, isOver, call } = explaining;
  const { query, policy } = call;
  const { entries = [], hits = 0 } = query.descriptors[index] ?? {};
  const rule = "rule" in descriptor ? descriptor.rule : undefined;
  const limits = explainLimits(explaining);
  const rules = policy.rules.filter(({ domain }) => domain === query.domain);
  return {
    entries,
    hits,
    tried: reportMatch(rules, entries, rule),
    matched: rule?.label,
    effect: descriptor.kind,
    isOver,
    limits,
    changesAfterUs: changeOf(limits, isOver),
  };
}

function explainLimits(explaining: Explaining): readonly ExplainedLimit[] {
  const { descriptor, index, prepared, request, buckets, call, regionCount } = explaining;
  if (descriptor.kind !== "limited") return [];
  const { query, overrides } = call;
  const isSettling =
    "rule" in descriptor &&
    descriptor.rule !== undefined &&
    prepared.peekedRules.has(descriptor.rule);
  const entries = query.descriptors[index]?.entries ?? [];
  const limits: ExplainedLimit[] = [];
  for (let i = descriptor.firstAsk; i < descriptor.firstAsk + descriptor.askCount; i += 1) {
    const ask = prepared.asks[i];
    const charge = request.charges[i];
    const result = request.results[i];
    if (ask === undefined || charge === undefined || result === undefined) continue;
    const { nowUs } = request;
    // The current state, not the state after the call.
    const bucket = pastBucket(buckets.byKey.get(charge.key), nowUs);
    limits.push({
      limit: isSettling ? { ...ask.limit, role: charge.role } : ask.limit,
      regionCount,
      burst: charge.burst,
      override: overrides.find(query.domain, entries, ask.limit.name),
      key: charge.key,
      usedHits: levelAt(charge, bucket, nowUs) / unitsPerHit,
      remainingHits: remainingHits(charge, bucket, nowUs),
      isOver: result.isOver,
      retryAfterUs: result.isOver ? retryAfterUs(charge, bucket, nowUs) : 0,
      fullAfterUs: bucketTimeToFullUs(charge, bucket, nowUs),
    });
  }
  return limits;
}

/** Over: until everything that is over fits. Not over: draining does not change the answer. */
function changeOf(limits: readonly ExplainedLimit[], isOver: boolean): number | undefined {
  if (!isOver) return undefined;
  let changeUs = 0;
  for (const { isOver: isLimitOver, limit, retryAfterUs: waitUs } of limits) {
    if (!isLimitOver || denialOf(limit.role) === "shadow") continue;
    if (waitUs === undefined) return undefined;
    changeUs = Math.max(changeUs, waitUs);
  }
  return changeUs;
}
