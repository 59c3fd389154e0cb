import { Breaker } from "../core/breaker.js";
import type { Clock } from "../core/clock.js";
import { type ErrorCode, ServiceError, toServiceError } from "../core/errors.js";
import type { Charge } from "../core/gcra.js";
import type { Verdict } from "../core/verdict.js";
import type { Policy } from "../policy/policy.js";
import type { LimitStore, StoreResult } from "../store/limit-store.js";
import { decidedByStore, descriptorOutcome, present } from "./answers.js";
import { Batcher, type BatcherEvent, type BatchOutcome } from "./batcher.js";
import type { DecisionCounters } from "./counters.js";
import type { DecidedRequest } from "./decided-request.js";
import { decideWithoutStore } from "./fallback.js";
import { KeyRecords } from "./key-records.js";
import { NewKeyGuard } from "./new-keys.js";
import type { PolicySource } from "./policy-source.js";
import { type PreparedQuery, prepareQuery } from "./prepared-query.js";
import type { OverloadCause, Pressure, PressureEvent } from "./pressure.js";
import type { RateLimitQuery } from "./query.js";
import { refuseFromMemory, rememberAnswer } from "./refusals.js";

/** What a `Decider` is made of. */
export interface DeciderParts {
  readonly policies: PolicySource;
  readonly store: LimitStore;
  /** Makes the empty embedded store that `on_store_failure: local` uses until the store is back. */
  readonly createLocalStore: () => LimitStore;
  readonly clock: Clock;
  readonly counters: DecisionCounters;
  /** How much this process has to do; told of every request here, and of the time elsewhere. */
  readonly pressure: Pressure;
  /** The longest a store call may take, in milliseconds. Default 10. */
  readonly storeBudgetMs: number;
  /** New keys that one rule may bring a second; more share one bucket. Default 10,000. */
  readonly newKeysPerSecondMax: number;
  /** A strong hash of a text, in hexadecimal, for values that are too long for a key. */
  readonly digest: (text: string) => string;
  /** How many replicas share the limits now, at least 1. */
  readonly replicaCount: () => number;
  readonly onEvent: (event: DeciderEvent) => void;
}

/** What happened to the store, or to this process, for logs. */
export type DeciderEvent = BatcherEvent | PressureEvent;

/**
 * How many hits a call asks for: the same for each descriptor, or one number a descriptor. Whole,
 * 0 to `costHitsMax`.
 */
export type Hits = number | readonly number[];

/** The part of a caller's remaining time that a store call may use. */
const callerBudgetRatio = 0.6;

/**
 * Decides queries: match, charge, ask the store in batches, fall back by each limit's failure mode,
 * format, count.
 */
export class Decider {
  readonly #parts: DeciderParts;
  readonly #batcher: Batcher;
  readonly #breaker = new Breaker();
  readonly #newKeys: NewKeyGuard;
  #records = new KeyRecords();
  #recordsPolicy: Policy | undefined;
  #localStore: LimitStore;
  /** The last answer of the store that was taken note of. */
  #remembered: StoreResult | undefined;

  constructor(parts: DeciderParts) {
    this.#parts = parts;
    this.#localStore = parts.createLocalStore();
    this.#newKeys = new NewKeyGuard(parts);
    const { store, clock, storeBudgetMs, counters: counts } = parts;
    const onEvent = (event: BatcherEvent): void => this.noteEvent(event);
    const breaker = this.#breaker;
    this.#batcher = new Batcher({ store, clock, storeBudgetMs, breaker, onEvent, counts });
  }

  /** Why requests are answered without the store now, although it may be well. */
  get overloadCause(): OverloadCause | undefined {
    return this.#parts.pressure.cause(this.#parts.clock.monotonicMs());
  }

  /** Whether the store is being left alone after repeated failures. */
  get isDegraded(): boolean {
    return this.#breaker.isOpen;
  }

  /**
   * Decides a query.
   *
   * @param deadlineMs when the caller stops waiting, on the monotonic clock; Infinity when unknown
   * @throws ServiceError POLICY_MISSING, REQUEST_INVALID, DEADLINE_PASSED, and, where a limit says
   *   `on_store_failure: error`, OVERLOADED or the STORE_ code of the failure
   */
  async decide(query: RateLimitQuery, deadlineMs: number): Promise<Verdict> {
    const prepared = this.prepare(query);
    const hits = query.descriptors.map((descriptor) => descriptor.hits);
    return this.decidePrepared(prepared, hits, deadlineMs);
  }

  /**
   * Matches a query against the policy in force, for many calls that ask the same.
   *
   * @throws ServiceError POLICY_MISSING, REQUEST_INVALID; counted as failed calls
   */
  prepare(query: RateLimitQuery): PreparedQuery {
    const { policies, counters, digest, clock } = this.#parts;
    try {
      const policy = policies.current();
      if (policy === undefined) throw new ServiceError("POLICY_MISSING");
      if (policy !== this.#recordsPolicy) {
        this.#records = new KeyRecords();
        this.#recordsPolicy = policy;
      }
      return prepareQuery(query, {
        policy,
        ruleCounters: counters.forPolicy(policy),
        records: this.#records,
        newKeys: this.#newKeys,
        digest,
        nowMs: clock.monotonicMs(),
      });
    } catch (thrown) {
      counters.countFailure(toServiceError(thrown).code);
      throw thrown;
    }
  }

  /** Whether what was prepared is still the policy in force. */
  isCurrent(prepared: PreparedQuery): boolean {
    return prepared.policy === this.#parts.policies.current();
  }

  /** Decides a call of a prepared query; as `decide` otherwise. */
  async decidePrepared(prepared: PreparedQuery, hits: Hits, deadlineMs: number): Promise<Verdict> {
    const { clock, counters, pressure } = this.#parts;
    const startMs = clock.monotonicMs();
    pressure.begin();
    try {
      if (deadlineMs <= startMs) throw new ServiceError("DEADLINE_PASSED");
      const asked = askOf(prepared, hits);
      let request = this.#decideAtOnce(asked, startMs);
      if (request === undefined && pressure.cause(startMs) !== undefined) {
        request = await this.#fallBack(asked, "OVERLOADED");
      }
      if (request === undefined) {
        const budgetEndMs = startMs + (deadlineMs - startMs) * callerBudgetRatio;
        // The one wait of a decision: each layer of promises costs about half a microsecond.
        const outcome = await this.#batcher.ask(asked.charges, budgetEndMs, asked.slot);
        // Who has gone by now reads no answer, and must not use up a share of the fallback.
        if (deadlineMs <= clock.monotonicMs()) throw new ServiceError("DEADLINE_PASSED");
        request =
          outcome.kind === "failed"
            ? await this.#fallBack(asked, outcome.code)
            : this.#takeOutcome(asked, outcome);
      }
      const verdict = present(prepared, request);
      this.#count(prepared, request, verdict);
      return verdict;
    } catch (thrown) {
      counters.countFailure(toServiceError(thrown).code);
      throw thrown;
    } finally {
      pressure.end();
      counters.countLatency(clock.monotonicMs() - startMs);
    }
  }

  /** What needs no store: nothing is limited, or the store has refused the same a moment ago. */
  #decideAtOnce({ prepared, charges, isRepeatable }: Asked, nowMs: number) {
    if (charges.length === 0) return nothingAsked;
    if (!isRepeatable) return undefined;
    const refused = refuseFromMemory(prepared.asks, charges, nowMs);
    if (refused === undefined) return undefined;
    this.#parts.counters.refusedFromMemoryCount += 1;
    return { isDenied: true, charges, ...refused };
  }

  #takeOutcome(
    { prepared, charges, isRepeatable }: Asked,
    outcome: Extract<BatchOutcome, { kind: "decided" }>,
  ): DecidedRequest {
    const { result, askedCount, sentMs } = outcome;
    // The first who still waits of those who asked the same remembers for all of them.
    if (isRepeatable && result.grantedCount < askedCount && result !== this.#remembered) {
      this.#remembered = result;
      const receivedMs = this.#parts.clock.monotonicMs();
      rememberAnswer(prepared.asks, charges, { ...result, sentMs, receivedMs });
    }
    return decidedByStore(charges, outcome);
  }

  async #fallBack(
    { prepared: { asks }, charges }: Asked,
    code: ErrorCode,
  ): Promise<DecidedRequest> {
    const { counters, replicaCount } = this.#parts;
    let isFailing = false;
    for (const { limit } of asks) {
      counters.countFallback(limit.onStoreFailure, code);
      if (limit.onStoreFailure === "error") isFailing = true;
    }
    if (isFailing) throw new ServiceError(code);
    const modes = asks.map(({ limit }) => limit.onStoreFailure);
    return decideWithoutStore({ charges, modes }, this.#localStore, replicaCount());
  }

  /** Takes note of what happened, and passes it on. */
  noteEvent(event: DeciderEvent): void {
    if (event.kind === "batchFailed") this.#parts.counters.countStoreFailure(event.code);
    // What was used locally is dropped: the store's own state counts again.
    const isStoreBack =
      event.kind === "circuitClosed" || (event.kind === "overloadEnded" && !this.isDegraded);
    if (isStoreBack) this.#localStore = this.#parts.createLocalStore();
    this.#parts.onEvent(event);
  }

  #count(prepared: PreparedQuery, request: DecidedRequest, verdict: Verdict): void {
    const { counters } = this.#parts;
    if (verdict.isDenied) counters.deniedCount += 1;
    else counters.okCount += 1;
    if (!prepared.isDomainKnown) {
      counters.unknownDomainCount += 1;
      return;
    }
    const { descriptors } = prepared;
    for (let i = 0; i < descriptors.length; i += 1) {
      const descriptor = descriptors[i];
      if (descriptor === undefined || descriptor.kind === "unmatched") {
        counters.unmatchedDescriptorCount += 1;
        continue;
      }
      const outcome = descriptorOutcome(descriptor, verdict.statuses[i], request);
      if (descriptor.counters !== undefined) descriptor.counters[outcome] += 1;
      else if (outcome === "over") counters.overrideOverCount += 1;
      else counters.overrideOkCount += 1;
    }
  }
}

/** A prepared query with the hits of one call. */
interface Asked {
  readonly prepared: PreparedQuery;
  readonly charges: readonly Charge[];
  readonly isRepeatable: boolean;
  /** Where identical calls meet; only calls for one hit of repeatable limits do. */
  readonly slot: PreparedQuery["slot"] | undefined;
}

function askOf(prepared: PreparedQuery, hits: Hits): Asked {
  const charges = chargesFor(prepared, hits);
  if (charges === prepared.charges) {
    const { isRepeatable, slot } = prepared;
    return { prepared, charges, isRepeatable, slot: isRepeatable ? slot : undefined };
  }
  // Other costs than one change nothing of repeatability, unless they are none.
  const isRepeatable = prepared.isRepeatable && charges.every(({ cost }) => cost > 0);
  return { prepared, charges, isRepeatable, slot: undefined };
}

const nothingAsked: DecidedRequest = { isDenied: false, charges: [], results: [], nowUs: 0 };

/** The charges of a call: the prepared ones for one hit each, copies with their cost otherwise. */
function chargesFor({ asks, charges }: PreparedQuery, hits: Hits): readonly Charge[] {
  const isOneEach = typeof hits === "number" ? hits === 1 : hits.every((one) => one === 1);
  if (isOneEach) return charges;
  return asks.map(({ charge, descriptorIndex }) => {
    const cost = typeof hits === "number" ? hits : (hits[descriptorIndex] ?? 1);
    return { ...charge, cost };
  });
}
