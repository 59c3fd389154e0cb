import { Breaker } from "../../core/base/breaker.js";
import type { Clock } from "../../core/base/clock.js";
import { type ErrorCode, ServiceError, toServiceError } from "../../core/base/errors.js";
import type { Digest } from "../../core/collections/keyed-hash.js";
import type { Charge } from "../../core/limits/bucket.js";
import type { RegionalLimits } from "../../core/limits/lending.js";
import type { LimitKey, Rule } from "../../core/limits/limit.js";
import { noOverrides, type OverrideTable } from "../../core/limits/override-table.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { Policy } from "../../policy/policy.js";
import type { LimitStore, StoreResult } from "../../store/limit-store.js";
import { decidedByStore, noteGlobal, present } from "./answers.js";
import { Batcher, type BatcherEvent, type BatchOutcome } from "./batcher.js";
import { CallCounter } from "./call-counter.js";
import type { DecisionCounters } from "./counters.js";
import { chargesFor, Decision, type DecisionCall, type ResolveDecision } from "./decision.js";
import type { DecidedRequest, DecisionObserver, ObservedCall } from "./decision-observer.js";
import { decideWithoutStore, type FallbackAsk } from "./fallback.js";
import { KeyRecords } from "./key-records.js";
import { NewKeyGuard } from "./new-keys.js";
import {
  type Believed,
  believedSince,
  findRecords,
  forgetRefunded,
  refuseFromMemory,
  rememberAnswer,
} from "./over-limit-cache.js";
import { PeekedRules } from "./peeked-rules.js";
import type { PolicySource } from "./policy-source.js";
import { type PreparedQuery, preparedBytes, prepareQuery } from "./prepared-query.js";
import type { OverloadCause, Pressure, PressureEvent } from "./pressure.js";
import type { Hits, RateLimitQuery } from "./query.js";
import { type QueryShape, shapedQuery } from "./query-shapes.js";
import { RecentCharges } from "./recent-charges.js";
import type { RefusalLog } from "./refusal-log.js";
import { type ShedMode, shedModeOf } from "./shedding.js";
import type { LimitSwitches } from "./switches.js";
import { WindowSource } from "./window-source.js";

/** The dependencies of a `Decider`. */
export interface DeciderParts {
  readonly policies: PolicySource;
  /** A snapshot of the operators' overrides. Default: none. */
  readonly overrides?: { current(): OverrideTable };
  readonly store: LimitStore;
  /** Creates an empty in-memory store for `on_store_failure: local` during a store outage. */
  readonly createLocalStore: () => LimitStore;
  readonly clock: Clock;
  readonly counters: DecisionCounters;
  /** The load of this process. The decider reports each request; another module reports time. */
  readonly pressure: Pressure;
  /** Maximum duration of a store call, in milliseconds. Default 10. */
  readonly storeBudgetMs: number;
  /** New keys per rule and second; further ones share one bucket. Default 10,000. */
  readonly newKeysPerSecondMax: number;
  /** Process-wide settings that apply to every limit. */
  readonly switches: LimitSwitches;
  /** The fraction of a limit at which hits count as near the limit, 0 to 1. Default 0.8. */
  readonly nearLimitRatio: number;
  /** A cryptographic hash in hexadecimal, for values that are too long for a key. */
  readonly digest: (text: string) => string;
  /** Maximum size of the per-key records, in bytes. Default 128 MiB. */
  readonly keyRecordsBytesMax?: number;
  /** The current number of replicas that share the limits, at least 1. */
  readonly replicaCount: () => number;
  /** Divides global limits among regions. Absent: they count like all others. */
  readonly regions?: RegionalLimits | undefined;
  readonly onEvent: (event: DeciderEvent) => void;
  /** Default none. */
  readonly observers?: readonly DecisionObserver[];
  /** Logs denied requests. Absent: denials are not logged. */
  readonly refusalLog?: RefusalLog | undefined;
}

/** An event of the store or of this process, for the log. */
export type DeciderEvent = BatcherEvent | PressureEvent;

/**
 * Decides queries: matches rules, charges limits, calls the store in batches, applies each limit's
 * failure mode, builds the response, and counts.
 */
export class Decider {
  readonly #parts: DeciderParts;
  readonly #observers: readonly DecisionObserver[];
  readonly #batcher: Batcher;
  readonly #settling: ResolveDecision = (decision, outcome, index) =>
    this.#settle(decision, outcome, index);
  readonly #breaker = new Breaker();
  readonly #newKeys: NewKeyGuard;
  readonly #callCounter: CallCounter;
  readonly #windows = new WindowSource();
  readonly #nameOf: (key: LimitKey) => LimitKey;
  /** Rebuilds a query from its shape. Absent if the store identifies buckets by complete keys. */
  readonly rehydrate:
    | ((shape: QueryShape, keys: readonly Readonly<Digest>[]) => PreparedQuery)
    | undefined;
  #records: KeyRecords;
  /** The policy under which the records were made. */
  #recordsPolicy: Policy | undefined;
  #recordsOverrides: OverrideTable | undefined;
  readonly #peeked = new PeekedRules();
  readonly #recentCharges = new RecentCharges();
  #localStore: LimitStore;
  /** What determines the shed mode of calls that are answered without being parsed. */
  #areLimitsCarried = false;
  #shedding: { readonly policy: Policy; readonly mode: ShedMode } | undefined;
  /** The last store result that was recorded. */
  #remembered: StoreResult | undefined;
  /** Which records of store calls are used. */
  #believed: Believed;

  constructor(parts: DeciderParts) {
    this.#parts = parts;
    this.#observers = parts.observers ?? [];
    this.#localStore = parts.createLocalStore();
    this.#believed = believedSince(Number.NEGATIVE_INFINITY, parts.regions);
    this.#records = new KeyRecords(parts.keyRecordsBytesMax);
    this.#newKeys = new NewKeyGuard(parts);
    const { counters, nearLimitRatio, switches } = parts;
    const { isShadow } = switches;
    const region = parts.regions?.share;
    this.#callCounter = new CallCounter({ counters, nearLimitRatio, isShadow, region });
    const { store, clock, storeBudgetMs, counters: counts } = parts;
    const hasShortKeys = store.shorten !== undefined;
    this.#nameOf = (key) => store.shorten?.(key) ?? key;
    this.rehydrate = hasShortKeys ? (shape, keys) => this.#rehydrate(shape, keys) : undefined;
    const onEvent = (event: BatcherEvent): void => this.noteEvent(event);
    const breaker = this.#breaker;
    this.#batcher = new Batcher({ store, clock, storeBudgetMs, breaker, onEvent, counts });
  }

  /** The current overload cause, or undefined if the process is not overloaded. */
  get overloadCause(): OverloadCause | undefined {
    return this.#parts.pressure.overload(this.#parts.clock.monotonicMs());
  }

  /** Rules of a policy that settle, as learned from calls: see `PeekedRules`. */
  peekedRules(policy: Policy): ReadonlySet<Rule> {
    return this.#peeked.alike(policy);
  }

  /** Whether any call since the process started has carried a limit. */
  get areLimitsCarried(): boolean {
    return this.#areLimitsCarried;
  }

  /** Whether the circuit breaker is open: the store is not called after repeated failures. */
  get isDegraded(): boolean {
    return this.#breaker.isOpen;
  }

  /**
   * Called for each call before it is parsed. While memory is exhausted, returns the mode in which
   * to answer the call without parsing it, and counts it. Undefined: parse the call.
   */
  shed(): ShedMode | undefined {
    const { pressure, policies, counters, switches } = this.#parts;
    if (pressure.memoryFull === undefined) return undefined;
    const policy = policies.current();
    if (policy === undefined) return undefined;
    if (this.#shedding?.policy !== policy) {
      const carried = this.#areLimitsCarried ? switches.defaults.onStoreFailure : undefined;
      this.#shedding = { policy, mode: switches.isShadow ? "allow" : shedModeOf(policy, carried) };
    }
    const { mode } = this.#shedding;
    counters.countFallback(mode, "MEMORY_FULL");
    if (mode === "allow") counters.okCount += 1;
    else if (mode === "deny") counters.deniedCount += 1;
    else counters.countFailure("MEMORY_FULL");
    return mode;
  }

  /** Whether an observer needs the complete query of this call. Called once per call. */
  wantsQuery(prepared: PreparedQuery): boolean {
    let isWanted = false;
    for (const observer of this.#observers) isWanted = observer.wants(prepared) || isWanted;
    return isWanted;
  }

  /**
   * Matches a query against the active policy, for reuse by identical calls.
   *
   * @param isKept whether the result will be reused; preparing for a single use costs less
   * @throws ServiceError POLICY_MISSING, REQUEST_INVALID; counted as failed calls
   */
  prepare(query: RateLimitQuery, isKept = true): PreparedQuery {
    const { policies, counters, switches, digest, clock } = this.#parts;
    try {
      const policy = policies.current();
      if (policy === undefined) throw new ServiceError("POLICY_MISSING");
      const overrides = this.#overrides();
      if (policy !== this.#recordsPolicy || overrides !== this.#recordsOverrides) {
        this.#records = new KeyRecords(this.#parts.keyRecordsBytesMax);
        this.#recordsPolicy = policy;
        this.#recordsOverrides = overrides;
      }
      this.#noteCarried(query);
      return prepareQuery(query, {
        policy,
        overrides,
        peekedRules: this.#peeked.under(policy),
        counters,
        switches,
        records: this.#records,
        isKept,
        nameOf: this.#nameOf,
        newKeys: this.#newKeys,
        digest,
        nowMs: clock.monotonicMs(),
        windowSource: this.#windows,
        region: this.#parts.regions?.share,
        epochUs: clock.epochUs(),
      });
    } catch (thrown) {
      counters.countFailure(toServiceError(thrown).code);
      throw thrown;
    }
  }

  /** Once a call has carried a limit, calls that are not parsed are treated as if all did. */
  #noteCarried({ descriptors, isOwn }: RateLimitQuery): void {
    if (this.#areLimitsCarried || isOwn === true) return;
    if (!descriptors.some(({ override }) => override !== undefined)) return;
    this.#areLimitsCarried = true;
    this.#shedding = undefined;
  }

  #rehydrate(shape: QueryShape, keys: readonly Readonly<Digest>[]): PreparedQuery {
    // Once per window, for all queries of the shape.
    if (shape.sample.window !== undefined) {
      this.#windows.renew(shape.sample, this.#parts.clock.epochUs());
    }
    return shapedQuery(shape, keys);
  }

  /** Whether the query was prepared under the active policy and the current overrides. */
  isCurrent(prepared: PreparedQuery): boolean {
    return (
      prepared.policy === this.#parts.policies.current() &&
      prepared.overrides === this.#overrides() &&
      prepared.peekedRules === this.#peeked.under(prepared.policy)
    );
  }

  #overrides(): OverrideTable {
    return this.#parts.overrides?.current() ?? noOverrides;
  }

  /** Whether the records of keys were made under the same limits. */
  #mayRemember({ policy, overrides }: PreparedQuery): boolean {
    return policy === this.#recordsPolicy && overrides === this.#recordsOverrides;
  }

  /**
   * Decides one call of a prepared query.
   *
   * @param deadlineMs when the caller stops waiting, on the monotonic clock; Infinity if unknown
   * @throws ServiceError DEADLINE_PASSED, and, if a limit says `on_store_failure: error`,
   *   OVERLOADED or the STORE_ code of the failure
   */
  decidePrepared(prepared: PreparedQuery, hits: Hits, deadlineMs: number): Promise<Verdict> {
    return new Promise((resolve, reject) => {
      this.ask(prepared, { hits, deadlineMs, decided: resolve, failed: reject });
    });
  }

  /**
   * Decides one call of a prepared query without a promise. Nearly every request takes this path.
   */
  ask(prepared: PreparedQuery, call: DecisionCall): void {
    const { clock, pressure } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (prepared.window !== undefined) this.#windows.renew(prepared, clock.epochUs());
    const charges = chargesFor(prepared, call.hits, this.#delayUsMax(prepared, call, nowMs));
    this.#peeked.note(prepared, charges);
    const bytes = preparedBytes(prepared);
    pressure.begin(bytes);
    const observed = call.query === undefined ? unobserved : this.#observe(nowMs);
    const parts = { prepared, charges, call, bytes, startMs: nowMs, observed };
    const decision = new Decision(this.#settling, parts);
    if (call.deadlineMs <= nowMs) {
      this.#fail(decision, new ServiceError("DEADLINE_PASSED"));
      return;
    }
    let known: DecidedRequest | undefined;
    try {
      known = this.#decideAtOnce(decision, nowMs);
    } catch (thrown) {
      this.#fail(decision, thrown);
      return;
    }
    if (known !== undefined) this.#finish(decision, known);
    else if (pressure.passesStoreBy(nowMs)) this.#fallBack(decision, "OVERLOADED");
    else this.#batcher.ask(charges, decision, decision.isCoalescing ? prepared.slot : undefined);
  }

  /** Returns the maximum delay such that the caller's deadline comes after decision and delay. */
  #delayUsMax({ delayUs }: PreparedQuery, call: DecisionCall, nowMs: number): number {
    if (delayUs === 0) return 0;
    if (call.refusesAtOnce === true) return 0;
    const remainingMs = call.deadlineMs - nowMs - this.#parts.storeBudgetMs;
    return Math.max(0, Math.floor(remainingMs * 1_000));
  }

  /**
   * Decides a charge that belongs to no policy, in the same batch as the calls of this turn, and
   * together with equal ones. If the store does not decide it, the process-wide failure mode does.
   *
   * @throws ServiceError OVERLOADED or the STORE_ code of the failure, if that mode is `error`
   */
  async decideCharge(charge: Charge): Promise<DecidedRequest> {
    const { clock, pressure, switches } = this.#parts;
    const { charges, slot } = this.#recentCharges.alike(charge);
    const bytes = chargeBytes + 2 * charge.key.length;
    pressure.begin(bytes);
    try {
      const outcome = pressure.passesStoreBy(clock.monotonicMs())
        ? passedBy
        : await new Promise<IndexedOutcome>((resolve) => {
            const settle = (one: BatchOutcome, index: number): void => resolve({ ...one, index });
            this.#batcher.ask(charges, { deadlineMs: Number.POSITIVE_INFINITY, settle }, slot);
          });
      if (outcome.kind === "decided") return decidedByStore(charges, outcome, outcome.index);
      const modes = [switches.defaults.onStoreFailure];
      return await this.#decideWithoutStore({ charges, modes }, outcome.code);
    } finally {
      pressure.end(bytes);
    }
  }

  /** Decides without the store if there is no limit, or if the store has just denied the same. */
  #decideAtOnce(decision: Decision, nowMs: number): DecidedRequest | undefined {
    const { prepared, charges, isPlain } = decision;
    if (charges.length === 0) return nothingAsked;
    if (!isPlain) return undefined;
    if (this.#mayRemember(prepared)) findRecords(prepared.asks, this.#records);
    const refused = refuseFromMemory(decision, nowMs, this.#believed);
    if (refused === undefined) return undefined;
    const { results, nowUs, isWhole } = refused;
    // Another limit may be over for longer, which only the store knows: call it if it is available.
    if (!isWhole && !this.isDegraded && !this.#parts.pressure.passesStoreBy(nowMs)) {
      return undefined;
    }
    return { isDenied: true, charges, results, nowUs, isFromMemory: true };
  }

  /**
   * Drops all cached denials, including those of store calls in flight, after an operator reset
   * buckets.
   */
  forgetRefusals(): void {
    const { clock, regions } = this.#parts;
    this.#believed = believedSince(clock.monotonicMs(), regions);
  }

  #settle(decision: Decision, outcome: BatchOutcome, index: number): void {
    if (!decision.isPlain) forgetRefunded(decision.prepared.asks, this.#records);
    // A caller whose deadline has passed must not use up part of the fallback.
    const nowMs = outcome.kind === "decided" ? outcome.receivedMs : this.#parts.clock.monotonicMs();
    if (decision.call.deadlineMs <= nowMs) {
      this.#fail(decision, new ServiceError("DEADLINE_PASSED"));
    } else if (outcome.kind === "failed") {
      this.#fallBack(decision, outcome.code);
    } else if (outcome.result.results.length !== decision.charges.length) {
      this.#fail(decision, new ServiceError("STORE_PROTOCOL"));
    } else {
      this.#take(decision, outcome, index);
    }
  }

  #take(
    decision: Decision,
    outcome: Extract<BatchOutcome, { kind: "decided" }>,
    index: number,
  ): void {
    let request: DecidedRequest;
    try {
      this.#remember(decision, outcome);
      request = decidedByStore(decision.charges, outcome, index);
    } catch (thrown) {
      // A bug fails only this call. The batch still has to resolve the others.
      this.#fail(decision, thrown);
      return;
    }
    this.#finish(decision, request);
  }

  #remember(
    { prepared, charges, isPlain }: Decision,
    { result, askedCount, sentMs, receivedMs }: Extract<BatchOutcome, { kind: "decided" }>,
  ): void {
    // Of several identical calls, the first one that still waits records the result for all.
    if (!isPlain || result.grantedCount >= askedCount || result === this.#remembered) return;
    this.#remembered = result;
    // Ignore results for limits that are no longer active.
    if (!this.#mayRemember(prepared)) return;
    const { asks } = prepared;
    const { results, nowUs } = result;
    const answer = { results, nowUs, sentMs, receivedMs };
    rememberAnswer({ asks, charges, records: this.#records }, answer);
  }

  /** Answers a call and counts it. */
  #finish(decision: Decision, request: DecidedRequest): void {
    const { prepared, call } = decision;
    let verdict: Verdict;
    try {
      verdict = present(prepared, request);
      this.#callCounter.count({ prepared, hits: call.hits, request, verdict });
    } catch (thrown) {
      this.#fail(decision, thrown);
      return;
    }
    this.#end(decision);
    if (prepared.isGlobal) noteGlobal(prepared, request, this.#parts.regions);
    call.decided(verdict);
    if (verdict.isDenied) this.#parts.refusalLog?.noteRule(prepared, verdict, decision.startMs);
    if (decision.observed.length > 0) this.#show(decision, request, verdict);
  }

  #observe(nowMs: number): readonly ObservedCall[] {
    const observed: ObservedCall[] = [];
    for (const observer of this.#observers) {
      const one = observer.begin(nowMs);
      if (one !== undefined) observed.push(one);
    }
    return observed;
  }

  #show({ prepared, call, observed }: Decision, request: DecidedRequest, verdict: Verdict): void {
    const { query, hits } = call;
    if (query === undefined) return;
    for (const one of observed) one.note({ query, hits, prepared, request, verdict });
  }

  #fail(decision: Decision, thrown: unknown): void {
    this.#parts.counters.countFailure(toServiceError(thrown).code);
    this.#end(decision);
    decision.call.failed(thrown);
  }

  #end({ bytes, startMs, call: { trace } }: Decision): void {
    const { clock, counters, pressure } = this.#parts;
    pressure.end(bytes);
    const elapsedMs = clock.monotonicMs() - startMs;
    counters.countLatency(elapsedMs);
    if (trace !== undefined) counters.noteTrace({ elapsedMs, epochUs: clock.epochUs(), trace });
  }

  #fallBack(decision: Decision, code: ErrorCode): void {
    const { prepared, charges } = decision;
    const modes = prepared.asks.map(({ limit }) => limit.onStoreFailure);
    this.#decideWithoutStore({ charges, modes }, code).then(
      (request) => this.#finish(decision, request),
      (thrown: unknown) => this.#fail(decision, thrown),
    );
  }

  async #decideWithoutStore(asked: FallbackAsk, code: ErrorCode): Promise<DecidedRequest> {
    const { counters, replicaCount } = this.#parts;
    for (const mode of asked.modes) counters.countFallback(mode, code);
    if (asked.modes.includes("error")) throw new ServiceError(code);
    return decideWithoutStore(asked, this.#localStore, replicaCount());
  }

  /** Handles an event and forwards it. */
  noteEvent(event: DeciderEvent): void {
    if (event.kind === "batchFailed") this.#parts.counters.countStoreFailure(event.code);
    // Drop the local usage: the store's state applies again.
    const isStoreBack =
      event.kind === "circuitClosed" || (event.kind === "overloadEnded" && !this.isDegraded);
    if (isStoreBack) this.#localStore = this.#parts.createLocalStore();
    this.#parts.onEvent(event);
  }
}

const unobserved: readonly ObservedCall[] = [];

const nothingAsked: DecidedRequest = {
  isDenied: false,
  charges: [],
  results: [],
  nowUs: 0,
  isFromMemory: false,
};

/** The outcome of one of several identical requests. */
type IndexedOutcome = BatchOutcome & { readonly index: number };

const passedBy: IndexedOutcome = { kind: "failed", code: "OVERLOADED", index: 0 };

/** Approximate size of a charge in flight, without its key, in bytes. */
const chargeBytes = 500;
