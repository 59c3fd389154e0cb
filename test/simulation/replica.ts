import { sha256 } from "../../src/app/base/sha256.js";
import type { Random } from "../../src/core/base/clock.js";
import { isServiceError } from "../../src/core/base/errors.js";
import type { Charge } from "../../src/core/limits/bucket.js";
import { isRepeatable } from "../../src/core/limits/gcra.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import type { Verdict } from "../../src/core/limits/verdict.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { Decider } from "../../src/decide/rate-limit/decider.js";
import type { LimitCheck, PreparedQuery } from "../../src/decide/rate-limit/prepared-query.js";
import { Pressure } from "../../src/decide/rate-limit/pressure.js";
import type { RateLimitQuery } from "../../src/decide/rate-limit/query.js";
import type { Policy } from "../../src/policy/policy.js";
import type { StoreOutcome, StoreResult } from "../../src/store/limit-store.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import type { Incident } from "../support/simulated-link.js";
import { type SentBatch, SimulatedStore } from "../support/simulated-store.js";
import { SimulatedClock, type SimulatedTime } from "../support/simulated-time.js";
import { noSwitches } from "../support/switches.js";
import { checkAnswer } from "./answers.js";
import { type AnswerSource, type Ask, storeBudgetMs } from "./ask.js";
import { KnownRefusals } from "./known-refusals.js";
import { allowanceOf, type Happening } from "./promise.js";
import type { Stores } from "./stores.js";

/** What a replica shares with the world around it. */
export interface ReplicaParts {
  readonly name: string;
  readonly time: SimulatedTime;
  readonly stores: Stores;
  readonly random: Random;
  readonly policy: Policy;
  /** How many replicas it begins with knowing, from 1. */
  readonly knownReplicaCount: number;
  /** Whether a charge may fit sooner than was said then: by refunds, losses, steps, edits. */
  readonly isLoosened: (charge: Charge, sinceMs: number) => boolean;
  /** Told of everything that may not happen. */
  readonly onViolation: (what: string) => void;
  /** Told of what the store granted a caller who may not know of it any more. */
  readonly onGranted: (key: LimitKey, hits: number) => void;
  readonly onIncident: (incident: Incident) => void;
  /** Told of what a local share let in, for each time it was begun anew. */
  readonly onLocal: (bucket: string, happening: Happening) => void;
  readonly onAnswer: (ask: Ask, source: AnswerSource, isMany: boolean) => void;
}

/** A batch whose answer has just been handed over. */
interface Delivery {
  readonly batch: SentBatch;
  /** Nothing for a request that failed. */
  readonly results: readonly (StoreResult | undefined)[];
  /** Of requests that failed. */
  readonly failedIdentities: ReadonlySet<string>;
  readonly eventCount: number;
  readonly okCounts: Map<string, number>;
}

/** A real decider under observation, between simulated callers and a simulated store. */
export class Replica {
  readonly counters = new DecisionCounters();
  readonly clock: SimulatedClock;
  readonly store: SimulatedStore;
  readonly #parts: ReplicaParts;
  readonly #decider: Decider;
  readonly #refusals = new KnownRefusals();
  readonly #prepared = new Map<RateLimitQuery, PreparedQuery>();
  readonly #asked: Ask[] = [];
  /** The calls of each batch whose answer may still come. */
  readonly #inFlight = new Map<SentBatch, readonly Ask[]>();
  #unsent: Ask[] = [];
  #delivery: Delivery | undefined;
  #localGeneration = 0;
  #isAlive = true;
  policy: Policy;
  knownReplicaCount: number;

  constructor(parts: ReplicaParts) {
    this.#parts = parts;
    this.policy = parts.policy;
    this.knownReplicaCount = parts.knownReplicaCount;
    const { time, stores, random } = parts;
    this.clock = new SimulatedClock(time, Math.floor(random.next() * 1_000_000));
    this.store = new SimulatedStore({
      sides: stores.sides,
      time,
      clock: this.clock,
      random,
      watcher: {
        sent: (batch) => this.#noteSent(batch),
        delivered: (batch, outcomes) => this.#noteDelivered(batch, outcomes),
        met: parts.onIncident,
        violated: (what) => this.#violate(what),
      },
    });
    this.#decider = new Decider({
      policies: { current: () => this.policy },
      store: this.store,
      createLocalStore: () => {
        this.#localGeneration += 1;
        return new MemoryLimitStore({ clock: this.clock, keysMax: 1_000 });
      },
      clock: this.clock,
      counters: this.counters,
      // Nothing takes time in a simulation but what waits.
      pressure: new Pressure({
        loopDelayMsMax: Number.POSITIVE_INFINITY,
        asksStoreWhenLate: true,
        requestsInFlightMax: 20_000,
        requestsInFlightBytesMax: 1_000_000_000,
      }),
      storeBudgetMs,
      newKeysPerSecondMax: 1_000_000,
      switches: noSwitches,
      nearLimitRatio: 0.8,
      digest: sha256,
      replicaCount: () => this.knownReplicaCount,
      onEvent: () => {},
    });
  }

  get name(): string {
    return this.#parts.name;
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Every call so far. */
  get asked(): readonly Ask[] {
    return this.#asked;
  }

  /** Dies: its callers get no answer, and nothing of what it waits for happens. */
  die(): void {
    this.#isAlive = false;
    this.clock.stop();
  }

  /** Asks, with this long to wait; Infinity when the caller does not say. */
  ask(query: RateLimitQuery, withinMs: number): void {
    const { nowMs } = this.#parts.time;
    const prepared = this.#prepare(query);
    const charges = chargesOf(prepared, query);
    const deadlineMs = nowMs + withinMs;
    const identity = charges.map(chargeText).join();
    const ask: Ask = {
      query,
      prepared,
      identity,
      startMs: nowMs,
      deadlineMs,
      batch: undefined,
      outcome: "waiting",
      unknownCount: 0,
    };
    this.#asked.push(ask);
    this.#unsent.push(ask);
    this.#doubtRefunded(charges);
    const refusedCount = this.counters.refusedFromMemoryCount;
    const hits = query.descriptors.map((descriptor) => descriptor.hits);
    const answer = this.#decider.decidePrepared(
      prepared,
      hits,
      this.clock.monotonicMs() + withinMs,
    );
    const isRefused = this.counters.refusedFromMemoryCount > refusedCount;
    if (withinMs > 0) this.#checkMemory(prepared, charges, isRefused);
    answer.then(
      (verdict) => this.#noteAnswer(ask, { isRefused, verdict }),
      (thrown: unknown) => this.#noteAnswer(ask, { isRefused, thrown }),
    );
  }

  #doubtRefunded(charges: readonly Charge[]): void {
    for (const { key, isRefund } of charges) if (isRefund) this.#refusals.doubt(key);
  }

  #prepare(query: RateLimitQuery): PreparedQuery {
    const known = this.#prepared.get(query);
    if (known !== undefined && this.#decider.isCurrent(known)) return known;
    const prepared = this.#decider.prepare(query);
    this.#prepared.set(query, prepared);
    return prepared;
  }

  /** A refusal from memory needs a reason, and a reason needs no second question. */
  #checkMemory(prepared: PreparedQuery, charges: readonly Charge[], isRefused: boolean): void {
    const { time, stores, isLoosened } = this.#parts;
    const { nowMs } = time;
    const { policy } = prepared;
    const held = isRepeatable(charges) ? this.#refusals.holding(charges, policy, nowMs) : [];
    if (!isRefused) {
      const sure = held.length === 0 ? undefined : this.#refusals.sure(charges, policy, nowMs);
      if (sure !== undefined) {
        const { charge, sentMs, untilMs } = sure;
        const when = `${charge.key}, asked at ${sentMs} ms, refused until ${untilMs} ms`;
        this.#violate(`asked ${charges.map(chargeText).join()} again of the store: ${when}`);
      }
      return;
    }
    if (held.length === 0) this.#violate("refused from memory what it may not know");
    const isExcused = held.some(({ charge, sentMs }) => isLoosened(charge, sentMs));
    if (!isExcused && stores.wouldGrant(charges)) {
      this.#violate("refused from memory what the store would grant");
    }
  }

  /** What is sent is what was asked in this turn, once. */
  #noteSent(batch: SentBatch): void {
    const counts = new Map<string, number>();
    for (const ask of this.#unsent) {
      ask.batch = batch;
      counts.set(ask.identity, (counts.get(ask.identity) ?? 0) + 1);
    }
    this.#inFlight.set(batch, this.#unsent);
    this.#unsent = [];
    for (const { charges, multiplicity } of batch.requests) {
      const identity = charges.map(chargeText).join();
      counts.set(identity, (counts.get(identity) ?? 0) - multiplicity);
    }
    for (const [identity, count] of counts) {
      if (count !== 0) this.#violate(`sent ${-count} more than was asked of ${identity}`);
    }
  }

  #noteDelivered(batch: SentBatch, outcomes: readonly StoreOutcome[]): void {
    if (!this.#isAlive) return;
    const { time } = this.#parts;
    const { eventCount } = time;
    const asks = this.#inFlight.get(batch) ?? [];
    this.#inFlight.delete(batch);
    const results = outcomes.map((one) => (one.kind === "decided" ? one.result : undefined));
    const failedIdentities = new Set(
      batch.requests.flatMap(({ charges }, i) => {
        return results[i] === undefined ? [charges.map(chargeText).join()] : [];
      }),
    );
    const okCounts = new Map<string, number>();
    const delivery: Delivery = { batch, results, failedIdentities, eventCount, okCounts };
    this.#noteGranted(delivery);
    this.#delivery = delivery;
    const waiting = asks.filter((ask) => ask.outcome === "waiting");
    this.#noteRefusals(delivery, waiting);
    time.afterTurn(() => this.#checkDelivery(delivery, waiting));
  }

  /** What was granted was taken, whoever still waits for it. */
  #noteGranted({ batch, results }: Delivery): void {
    batch.requests.forEach(({ charges }, i) => {
      for (const { key, cost, role, isRefund } of charges) {
        const hits = role === "enforce" && !isRefund ? cost * (results[i]?.grantedCount ?? 0) : 0;
        if (hits > 0) this.#parts.onGranted(key, hits);
      }
    });
  }

  /** What is refused is known, as long as somebody was waiting for it. */
  #noteRefusals({ batch, results }: Delivery, waiting: readonly Ask[]): void {
    const identities = batch.requests.map(({ charges }) => charges.map(chargeText).join());
    batch.requests.forEach(({ charges, multiplicity }, i) => {
      const result = results[i];
      this.#doubtRefunded(charges);
      if (result === undefined || result.grantedCount === multiplicity) return;
      const asks = waiting.filter(({ identity }) => identity === identities[i]);
      const same = batch.requests.filter((_, j) => identities[j] === identities[i]);
      const sameCount = same.reduce((sum, one) => sum + one.multiplicity, 0);
      // Where one of several alike has been given up, nobody can say here which one it was.
      const isSure = same.length === 1 || asks.length === sameCount;
      const [ask] = asks;
      if (ask === undefined || !isRepeatable(charges)) return;
      const { policy } = ask.prepared;
      this.#refusals.note(charges, result, { policy, sentMs: batch.sentMs, isSure });
    });
  }

  /** As many were let in as the store granted, and everybody was answered. */
  #checkDelivery(delivery: Delivery, waiting: readonly Ask[]): void {
    if (!this.#isAlive) return;
    const left = waiting.filter((ask) => ask.outcome === "waiting");
    if (left.length > 0) this.#violate(`left ${left.length} without the answer that came`);
    const { batch, results, failedIdentities, okCounts } = delivery;
    const granted = new Map<string, number>();
    const asked = new Map<string, number>();
    batch.requests.forEach(({ charges, multiplicity }, i) => {
      const identity = charges.map(chargeText).join();
      const count = results[i]?.grantedCount ?? 0;
      granted.set(identity, (granted.get(identity) ?? 0) + count);
      asked.set(identity, (asked.get(identity) ?? 0) + multiplicity);
    });
    for (const [identity, grantedCount] of granted) {
      // Requests alike need the same parts, and fail together.
      if (failedIdentities.has(identity)) {
        if (grantedCount > 0) this.#violate(`failed and granted ${identity} in one batch`);
        continue;
      }
      const okCount = okCounts.get(identity) ?? 0;
      const waitingCount = waiting.filter((ask) => ask.identity === identity).length;
      const goneCount = (asked.get(identity) ?? 0) - waitingCount;
      if (okCount > grantedCount || okCount < grantedCount - goneCount) {
        this.#violate(`let ${okCount} in where the store granted ${grantedCount} of ${identity}`);
      }
    }
  }

  #noteAnswer(ask: Ask, answer: Answered): void {
    if (!this.#isAlive) return;
    const { time, onAnswer } = this.#parts;
    if (ask.outcome !== "waiting") this.#violate("answered one call twice");
    this.#unsent = this.#unsent.filter((other) => other !== ask);
    ask.outcome = outcomeOf(answer);
    this.#doubtRefunded(chargesOf(ask.prepared, ask.query));
    const source = this.#sourceOf(ask, answer);
    const statuses = answer.verdict?.statuses ?? [];
    ask.unknownCount = statuses.filter(({ isOver }) => isOver === undefined).length;
    if (source !== "memory" && ask.unknownCount > 0) this.#violate("told nothing of what it asked");
    if (source === "store" && ask.outcome === "ok" && this.#delivery !== undefined) {
      const { okCounts } = this.#delivery;
      okCounts.set(ask.identity, (okCounts.get(ask.identity) ?? 0) + 1);
    }
    if (source === "fallback") this.#noteLocal(ask);
    const code = isServiceError(answer.thrown) ? answer.thrown.code : undefined;
    const found = checkAnswer({ ask, source, code, nowMs: time.nowMs });
    for (const what of found) this.#violate(what);
    onAnswer(
      ask,
      source,
      (ask.batch?.requests ?? []).some((one) => one.multiplicity > 1),
    );
  }

  #sourceOf(ask: Ask, { isRefused }: Answered): AnswerSource {
    if (ask.deadlineMs <= ask.startMs) return "nobody";
    if (isRefused) return "memory";
    if (ask.prepared.asks.length === 0) return "nobody";
    const delivery = this.#delivery;
    const isNow = delivery?.eventCount === this.#parts.time.eventCount;
    if (!isNow || delivery.batch !== ask.batch) return "fallback";
    return delivery.failedIdentities.has(ask.identity) ? "fallback" : "store";
  }

  /** Enforced limits that answered by their local share, each with what it let in. */
  #noteLocal(ask: Ask): void {
    const { name, time, onLocal } = this.#parts;
    if (ask.outcome === "failed") return;
    for (const one of ask.prepared.asks) {
      const { limit, charge } = one;
      if (limit.onStoreFailure !== "local") continue;
      const hits = hitsOf(one, ask.query);
      const isTaken = ask.outcome === "ok" && isCounting(limit.role);
      onLocal(`${name} ${this.#localGeneration} ${charge.key}`, {
        kind: "asked",
        atUs: time.nowUs,
        allowance: allowanceOf(limit, this.knownReplicaCount),
        takenHits: isTaken && !charge.isRefund ? hits : 0,
        inVainHits: 0,
        serverUs: time.nowUs,
        refundedHits: charge.isRefund ? hits : 0,
        isRefused: false,
        role: limit.role,
      });
    }
  }

  #violate(what: string): void {
    this.#parts.onViolation(`${this.name} ${what}`);
  }
}

interface Answered {
  readonly isRefused: boolean;
  readonly verdict?: Verdict;
  readonly thrown?: unknown;
}

function outcomeOf({ verdict }: Answered): Ask["outcome"] {
  if (verdict === undefined) return "failed";
  return verdict.isDenied ? "denied" : "ok";
}

function isCounting(role: string): boolean {
  return role === "enforce" || role === "settle";
}

function hitsOf({ descriptorIndex }: LimitCheck, { descriptors }: RateLimitQuery): number {
  return descriptors[descriptorIndex]?.hits ?? 0;
}

function chargesOf({ asks }: PreparedQuery, query: RateLimitQuery): readonly Charge[] {
  return asks.map((ask) => ({ ...ask.charge, cost: hitsOf(ask, query) }));
}

function chargeText({ key, cost, isRefund }: Charge): string {
  return `${key}${isRefund ? "-" : "+"}${cost}`;
}
