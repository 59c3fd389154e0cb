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
  /** A space of its own: no key in it is one of the active policy. */
  readonly store: LimitStore;
  /** What the store of the active policy calls the bucket of a key. */
  readonly liveNameOf: (key: LimitKey) => LimitKey;
  /** When the run began on the first replica, in milliseconds since 1970. */
  readonly sinceEpochMs: number;
  readonly clock: Clock;
  /** The longest a store call may take, in milliseconds. */
  readonly storeBudgetMs: number;
  readonly newKeysPerSecondMax: number;
  readonly switches: LimitSwitches;
  /** This region among those that share global limits. Absent: limits are not divided. */
  readonly region?: RegionShare | undefined;
  /** A strong hash of a text, in hexadecimal. */
  readonly digest: (text: string) => string;
  /** Whether this process has no time, or no store, for what nobody waits for. */
  readonly isBusy: () => boolean;
  /** Bounds, where they are not the defaults. */
  readonly bounds?: Partial<ShadowBounds>;
}

/** How much a shadow may cost. */
export interface ShadowBounds {
  /** Calls that it decides in a second; of more it takes a sample. */
  readonly perSecondMax: number;
  /** Calls that wait for their turn. */
  readonly queueMax: number;
  /** Calls that the store has not answered. */
  readonly inFlightMax: number;
}

/** About 5 % of a core, at 10 us a call. */
const shadowBounds: ShadowBounds = {
  perSecondMax: 5_000,
  queueMax: 1_000,
  inFlightMax: 1_000,
};

/** The longest call that is looked at, in UTF-16 units of keys and values: thousands may wait. */
export const shadowCharsMax = 4_096;

/** Calls that one turn of the event loop takes from the queue: half a millisecond of it. */
const turnCallsMax = 50;

/** The least part of calls that is looked at is 1 of this; a power of two. */
const divisorMax = 1_024;

const secondMs = 1_000;

/** Shows calls to the shadow that runs now, if one does. */
export function shadowObserver(shadow: { current(): ShadowRun | undefined }): DecisionObserver {
  return { wants: () => shadow.current() !== undefined, begin: () => shadow.current() };
}

/**
 * A candidate beside the active policy: decides the same calls over buckets of its own, after
 * they were answered, and counts where it would have answered otherwise. Nobody waits for it. What
 * comes too fast, and what a slow store leaves unanswered, is left out and counted as unseen.
 *
 * Of more than `perSecondMax` calls a second a sample is taken: requests by a hash of what they
 * ask, the same in all replicas, so that a bucket of one caller sees all of its calls or none. A
 * bucket that many callers share is charged for those that are left out, too.
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

  /** One call of so many is looked at now; a power of two. */
  get divisor(): number {
    return this.#divisor;
  }

  /** Takes note of a call that was answered; costs no more than a place in the queue. */
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

  /** What was counted since the last time; undefined: nothing. */
  take(): ShadowCounts | undefined {
    return this.#counter.take();
  }

  /** Takes no more calls; what the store still answers is left aside. */
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
      // The candidate makes too many limits of it; the words may hold a caller's values.
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

  /** In the same turn, so that the store brings buckets to their beginnings before the call. */
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

  /** Those of the call, times the divisor for buckets that many requests meet. */
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

/** Whether a request is one of those that are looked at; replicas agree about it. */
function isInSample({ domain, descriptors }: RateLimitQuery, divisor: number): boolean {
  let hash = hashInto(firstHash, domain);
  for (const { entries } of descriptors) {
    for (const { key, value } of entries) hash = hashInto(hashInto(hash, key), value ?? "");
  }
  // The upper bits, which all of the text has reached.
  return ((hash >>> 16) ^ (hash & 0xffff)) % divisor === 0;
}

/** FNV-1a over UTF-16 units, which ends a text with a unit that no text holds alone. */
const firstHash = 0x811c9dc5;
const hashPrime = 0x01000193;

function hashInto(before: number, text: string): number {
  let hash = before;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), hashPrime);
  }
  return Math.imul(hash ^ 0xffff, hashPrime);
}
