import { Breaker } from "../../core/base/breaker.js";
import type { Cancel, Clock } from "../../core/base/clock.js";
import { costHitsMax } from "../../core/limits/bucket.js";
import { charCountOf } from "../../core/limits/key.js";
import type { RegionShare } from "../../core/limits/lending.js";
import { isPattern, type LimitKey } from "../../core/limits/limit.js";
import type { OverrideTable } from "../../core/limits/override-table.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { Policy } from "../../policy/policy.js";
import type { LimitStore } from "../../store/limit-store.js";
import { decidedByStore, present } from "../rate-limit/answers.js";
import { Batcher, type BatchOutcome } from "../rate-limit/batcher.js";
import { DecisionCounters } from "../rate-limit/counters.js";
import { chargesFor } from "../rate-limit/decision.js";
import type {
  AnsweredCall,
  DecisionObserver,
  ObservedCall,
} from "../rate-limit/decision-observer.js";
import { KeyRecords } from "../rate-limit/key-records.js";
import { NewKeyGuard } from "../rate-limit/new-keys.js";
import { PeekedRules } from "../rate-limit/peeked-rules.js";
import { type PreparedQuery, prepareQuery } from "../rate-limit/prepared-query.js";
import type { Hits, RateLimitQuery } from "../rate-limit/query.js";
import type { LimitSwitches } from "../rate-limit/switches.js";
import { WindowSource } from "../rate-limit/window-source.js";
import { ShadowCounter, type ShadowCounts } from "./shadow-counts.js";
import { ShadowInitialBuckets } from "./shadow-initial-buckets.js";

interface ShadowRunParts {
  /** The candidate. */
  readonly policy: Policy;
  readonly overrides: { current(): OverrideTable };
  /** A separate key space: no key in it belongs to the active policy. */
  readonly store: LimitStore;
  /** Name of a key's bucket in the store of the active policy. */
  readonly liveNameOf: (key: LimitKey) => LimitKey;
  /** When the run began on the first replica, in milliseconds since 1970. */
  readonly sinceEpochMs: number;
  readonly clock: Clock;
  /** Maximum duration of a store call, in milliseconds. */
  readonly storeBudgetMs: number;
  readonly newKeysPerSecondMax: number;
  readonly switches: LimitSwitches;
  /** This region among those that share global limits. Absent: limits are not divided. */
  readonly region?: RegionShare | undefined;
  /** A cryptographic hash in hexadecimal. */
  readonly digest: (text: string) => string;
  /** Whether this process has no time, or no store, for work that no caller waits for. */
  readonly isBusy: () => boolean;
  /** Bounds that differ from the defaults. */
  readonly bounds?: Partial<ShadowBounds>;
}

/** Bounds of the cost of a shadow. */
export interface ShadowBounds {
  /** Maximum number of calls decided per second. Of more calls, a sample is taken. */
  readonly perSecondMax: number;
  /** Maximum number of calls that wait for their turn. */
  readonly queueMax: number;
  /** Maximum number of calls that the store has not answered. */
  readonly inFlightMax: number;
}

/** About 5 % of a core, at 10 us a call. */
const shadowBounds: ShadowBounds = {
  perSecondMax: 5_000,
  queueMax: 1_000,
  inFlightMax: 1_000,
};

/** Maximum size of an evaluated call, in UTF-16 units of keys and values: thousands may wait. */
export const shadowCharsMax = 4_096;

/** Calls that one turn of the event loop takes from the queue: half a millisecond of work. */
const turnCallsMax = 50;

/** Maximum divisor: at least one call in this many is evaluated. A power of two. */
const divisorMax = 1_024;

const secondMs = 1_000;

/** Shows calls to the current shadow run, if there is one. */
export function shadowObserver(shadow: { current(): ShadowRun | undefined }): DecisionObserver {
  return { wants: () => shadow.current() !== undefined, begin: () => shadow.current() };
}

/**
 * Runs a candidate next to the active policy: decides the same calls with separate buckets, after
 * they were answered, and counts the differences. No caller waits for it. Calls that come too fast,
 * or that a slow store leaves unanswered, are skipped and counted as unseen.
 *
 * Above `perSecondMax` calls a second, a sample is taken: requests by a hash of what they ask, the
 * same in all replicas, so that a bucket of one caller sees all of its calls or none. A bucket that
 * many callers share is also charged for the skipped calls.
 */
export class ShadowRun implements ObservedCall {
  readonly #parts: ShadowRunParts;
  readonly #bounds: ShadowBounds;
  readonly #counter = new ShadowCounter();
  readonly #counters = new DecisionCounters();
  readonly #records = new KeyRecords(0);
  readonly #windows = new WindowSource();
  readonly #peeked = new PeekedRules();
  readonly #beginnings: ShadowInitialBuckets;
  readonly #newKeys: NewKeyGuard;
  readonly #batcher: Batcher;
  #queue: AnsweredCall[] = [];
  #cancelTurn: Cancel | undefined;
  #inFlightCount = 0;
  #secondEndsMs: number;
  #cameCount = 0;
  #takenCount = 0;
  #divisor = 1;
  #isClosed = false;

  constructor(parts: ShadowRunParts) {
    const { clock, store, storeBudgetMs } = parts;
    this.#parts = parts;
    this.#bounds = { ...shadowBounds, ...parts.bounds };
    this.#beginnings = new ShadowInitialBuckets(1_000 * parts.sinceEpochMs);
    this.#newKeys = new NewKeyGuard(parts);
    this.#secondEndsMs = clock.monotonicMs() + secondMs;
    this.#batcher = new Batcher({
      store,
      clock,
      storeBudgetMs,
      breaker: new Breaker(),
      onEvent: () => {},
      counts: this.#counters,
    });
  }

  /** The candidate. */
  get policy(): Policy {
    return this.#parts.policy;
  }

  /** One call in this many is evaluated now. A power of two. */
  get divisor(): number {
    return this.#divisor;
  }

  /** Queues a call that was answered. Costs no more than a place in the queue. */
  note(call: AnsweredCall): void {
    if (this.#isClosed) return;
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs >= this.#secondEndsMs) this.#beginSecond(nowMs);
    this.#cameCount += 1;
    const { perSecondMax, queueMax } = this.#bounds;
    const isLeftOut =
      this.#takenCount >= perSecondMax ||
      this.#queue.length >= queueMax ||
      (this.#divisor > 1 && !isInSample(call.query, this.#divisor)) ||
      isLong(call.query) ||
      this.#parts.isBusy();
    if (isLeftOut) {
      this.#counter.noteUnseen();
      return;
    }
    this.#takenCount += 1;
    this.#queue.push(call);
    this.#cancelTurn ??= this.#parts.clock.scheduleTurn(() => this.#takeTurn());
  }

  /** Takes what was counted since the last call. Undefined: nothing. */
  take(): ShadowCounts | undefined {
    return this.#counter.take();
  }

  /** Stops taking calls. Later answers of the store are ignored. */
  close(): void {
    this.#isClosed = true;
    this.#queue = [];
    this.#cancelTurn?.();
  }

  #beginSecond(nowMs: number): void {
    let divisor = 1;
    while (divisor < divisorMax && this.#cameCount / divisor > this.#bounds.perSecondMax) {
      divisor *= 2;
    }
    this.#divisor = divisor;
    this.#secondEndsMs = nowMs + secondMs;
    this.#cameCount = 0;
    this.#takenCount = 0;
  }

  #takeTurn(): void {
    this.#cancelTurn = undefined;
    const calls = this.#queue.splice(0, turnCallsMax);
    for (const call of calls) {
      if (this.#inFlightCount >= this.#bounds.inFlightMax) this.#counter.noteUnseen();
      else this.#decide(call);
    }
    if (this.#queue.length > 0) {
      this.#cancelTurn = this.#parts.clock.scheduleTurn(() => this.#takeTurn());
    }
  }

  #decide(call: AnsweredCall): void {
    let prepared: PreparedQuery;
    const liveNames = new Map<LimitKey, LimitKey>();
    try {
      prepared = this.#prepare(call.query, liveNames);
    } catch {
      // The candidate matches too many limits. The message may contain a caller's values.
      this.#counter.noteUnseen();
      return;
    }
    const charges = chargesFor(prepared, this.#hitsOf(call, prepared));
    this.#peeked.note(prepared, charges);
    if (charges.length === 0) {
      const results = { isDenied: false, charges, results: [], nowUs: 0, isFromMemory: false };
      this.#compare(call, prepared, present(prepared, results));
      return;
    }
    this.#begin(call, prepared, liveNames);
    this.#inFlightCount += 1;
    this.#batcher.ask(charges, {
      deadlineMs: Number.POSITIVE_INFINITY,
      settle: (outcome, index) => {
        this.#inFlightCount -= 1;
        const verdict = this.#verdictOf({ prepared, charges, outcome, index });
        if (this.#isClosed) return;
        if (verdict === undefined) this.#counter.noteUnseen();
        else this.#compare(call, prepared, verdict);
      },
    });
  }

  /** In the same turn, so that the store applies the start of buckets before the call. */
  #begin(
    { query: { domain }, request }: AnsweredCall,
    { asks, descriptors }: PreparedQuery,
    liveNames: ReadonlyMap<LimitKey, LimitKey>,
  ): void {
    const liveName = (key: LimitKey) => liveNames.get(key);
    const call = { asks, liveName, request, epochUs: this.#parts.clock.epochUs() };
    for (const { ask, kind, charge } of this.#beginnings.of(call)) {
      const descriptor = descriptors[ask.descriptorIndex];
      const rule = descriptor !== undefined && "rule" in descriptor ? descriptor.rule : undefined;
      if (rule !== undefined) this.#counter.noteBeginning(domain, rule, kind);
      if (charge === undefined) continue;
      this.#inFlightCount += 1;
      this.#batcher.ask([charge], {
        deadlineMs: Number.POSITIVE_INFINITY,
        settle: () => {
          this.#inFlightCount -= 1;
        },
      });
    }
  }

  #verdictOf({ prepared, charges, outcome, index }: Settled): Verdict | undefined {
    if (outcome.kind === "failed") return undefined;
    if (outcome.result.results.length !== charges.length) return undefined;
    return present(prepared, decidedByStore(charges, outcome, index));
  }

  #compare(call: AnsweredCall, prepared: PreparedQuery, verdict: Verdict): void {
    this.#counter.compare(call.query.domain, call, { prepared, verdict });
  }

  #prepare(query: RateLimitQuery, liveNames: Map<LimitKey, LimitKey>): PreparedQuery {
    const { liveNameOf } = this.#parts;
    const { policy, overrides, switches, region, digest, clock, store } = this.#parts;
    return prepareQuery(query, {
      policy,
      overrides: overrides.current(),
      peekedRules: this.#peeked.under(policy),
      counters: this.#counters,
      switches,
      records: this.#records,
      isKept: false,
      nameOf: (key) => {
        const name = store.shorten?.(key) ?? key;
        liveNames.set(name, liveNameOf(key));
        return name;
      },
      newKeys: this.#newKeys,
      digest,
      nowMs: clock.monotonicMs(),
      windowSource: this.#windows,
      region,
      epochUs: clock.epochUs(),
    });
  }

  /** The hits of the call, times the divisor for buckets that many requests share. */
  #hitsOf({ hits }: AnsweredCall, { descriptors }: PreparedQuery): Hits {
    if (this.#divisor === 1) return hits;
    return descriptors.map((descriptor, i) => {
      const own = typeof hits === "number" ? hits : (hits[i] ?? 1);
      const rule = "rule" in descriptor ? descriptor.rule : undefined;
      const isShared =
        rule?.sharePatterns?.some((pattern) => pattern !== undefined) === true ||
        (descriptors.length > 1 &&
          rule?.path.every((step) => step.value !== undefined && !isPattern(step)) === true);
      return isShared ? Math.min(costHitsMax, own * this.#divisor) : own;
    });
  }
}

interface Settled {
  readonly prepared: PreparedQuery;
  readonly charges: PreparedQuery["charges"];
  readonly outcome: BatchOutcome;
  readonly index: number;
}

function isLong({ descriptors }: RateLimitQuery): boolean {
  const counts = descriptors.map(({ entries }) => charCountOf(entries));
  return counts.reduce((sum, count) => sum + count, 0) > shadowCharsMax;
}

/** Whether a request is in the sample. All replicas agree. */
function isInSample({ domain, descriptors }: RateLimitQuery, divisor: number): boolean {
  let hash = hashInto(firstHash, domain);
  for (const { entries } of descriptors) {
    for (const { key, value } of entries) hash = hashInto(hashInto(hash, key), value ?? "");
  }
  // Includes the upper bits, which the whole text affects.
  return ((hash >>> 16) ^ (hash & 0xffff)) % divisor === 0;
}

/** FNV-1a over UTF-16 units. Ends each text with a unit that no text contains alone. */
const firstHash = 0x811c9dc5;
const hashPrime = 0x01000193;

function hashInto(before: number, text: string): number {
  let hash = before;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), hashPrime);
  }
  return Math.imul(hash ^ 0xffff, hashPrime);
}
