import type { Clock, Random } from "../../core/base/clock.js";
import { Admission } from "../../decide/admission/admission.js";
import type { AdmissionRequest } from "../../decide/admission/admission-call.js";
import { serviceQuery } from "../../decide/admission/service-query.js";
import type { DecisionCounters } from "../../decide/rate-limit/counters.js";
import { Decider } from "../../decide/rate-limit/decider.js";
import type { PreparedQuery } from "../../decide/rate-limit/prepared-query.js";
import { Pressure } from "../../decide/rate-limit/pressure.js";
import { defaultSwitches } from "../../decide/rate-limit/switches.js";
import { LedgerKeyCounts } from "../../fleet/budgets/ledger-key-counts.js";
import { StoreBudgetLedger } from "../../fleet/budgets/store-budget-ledger.js";
import { PermitShares } from "../../fleet/claims/permit-shares.js";
import type { Policy } from "../../policy/policy.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { PermitStore } from "../../store/coordination/permit-store.js";
import type { LimitStore } from "../../store/limit-store.js";
import { MemoryLimitStore } from "../../store/memory.js";
import type { EventCalendar } from "./calendar.js";
import type { BudgetLedgerStore } from "./virtual-store.js";

/** Defaults of the program's own settings. */
const storeBudgetMs = 10;
const newKeysPerSecondMax = 10_000;
const permitLeaseMsMax = 300_000;

/** Time that Envoy waits for an answer about rate limits, in milliseconds: its own default. */
const rateLimitTimeoutMs = 20;

/** Start time of a scenario: a day without daylight saving. */
const startUs = 1_767_225_600_000_000;

/** A request that a replica knows of. */
export interface HeadgateCall {
  /** Called when the replica is gone. Its answers no longer count. */
  detach(): void;
  /** Continues like Envoy without an answer, after all requests of the replica are detached. */
  unanswered(): void;
}

/** The replica that a process belongs to. */
export interface HeadgatePlace {
  readonly index: number;
  /** Counters of all processes of the replica. */
  readonly counters: DecisionCounters;
  /** Amount by which its wall clock is ahead, in milliseconds. */
  readonly skewMs: number;
  /** Number of requests that it was asked about. */
  askedCount: number;
}

interface SimulatedHeadgateParts {
  readonly replica: HeadgatePlace;
  readonly policy: Policy;
  readonly calendar: EventCalendar;
  readonly random: Random;
  readonly store: LimitStore;
  /** Store through which replicas share permits; undefined: there is only this one. */
  readonly permits: PermitStore | undefined;
  /** Store in which replicas count calls in flight by key; undefined: there is only this one. */
  readonly budgets: BudgetLedgerStore | undefined;
  /** Returns the number of replicas. */
  readonly replicaCount: () => number;
  /** Returns a strong hash of a text, in hexadecimal. */
  readonly digest: (text: string) => string;
  /** Called if promises must run before time advances. */
  readonly onResolved: () => void;
}

/** Result of rate limits for a request, as Envoy treats it. */
export type LimitsAnswer =
  | { readonly kind: "passes" }
  | { readonly kind: "denied"; readonly retryMs: number };

const passes: LimitsAnswer = { kind: "passes" };

/** A process of Headgate: the program's own decisions, on a simulated clock. */
export class SimulatedHeadgate {
  readonly index: number;
  readonly admission: Admission;
  readonly #replica: HeadgatePlace;
  readonly #shares: PermitShares | undefined;
  readonly #ledger: StoreBudgetLedger | undefined;
  readonly #open = new Set<HeadgateCall>();
  readonly #policy: Policy;
  readonly #calendar: EventCalendar;
  readonly #decider: Decider;
  readonly #prepared = new Map<AdmissionRequest["headers"], PreparedQuery | undefined>();
  readonly #onResolved: () => void;
  #isGone = false;
  #drained: (() => void) | undefined;

  constructor(parts: SimulatedHeadgateParts) {
    const { replica, policy, calendar, random, digest, store, replicaCount } = parts;
    this.index = replica.index;
    this.#replica = replica;
    this.#onResolved = parts.onResolved;
    this.#policy = policy;
    this.#calendar = calendar;
    const clock = this.#createClock(parts.onResolved);
    const policies = { current: () => policy };
    this.#decider = new Decider({
      policies,
      store,
      createLocalStore: () => new MemoryLimitStore({ clock }),
      clock,
      counters: replica.counters,
      pressure: new Pressure({
        loopDelayMsMax: 100,
        asksStoreWhenLate: false,
        requestsInFlightMax: 1_000_000,
        requestsInFlightBytesMax: Number.POSITIVE_INFINITY,
      }),
      storeBudgetMs,
      newKeysPerSecondMax,
      nearLimitRatio: 0.8,
      switches: defaultSwitches,
      digest,
      replicaCount,
      onEvent: () => {},
    });
    this.#shares = sharesOf(parts, clock);
    this.#ledger = ledgerOf(parts, clock);
    this.admission = new Admission({
      policies,
      clock,
      random,
      decider: this.#decider,
      shares: this.#shares,
      digest,
      permitLeaseMsMax,
      isOverloaded: () => false,
      ...(this.#ledger && { sharedKeys: new LedgerKeyCounts(this.#ledger, digest) }),
      onEvent: () => {},
    });
  }

  /** Registers a request that will be asked about. */
  begin(call: HeadgateCall): void {
    this.#replica.askedCount += 1;
    this.#open.add(call);
  }

  /** Registers the end of a request. */
  end(call: HeadgateCall): void {
    this.#open.delete(call);
    if (this.#drained !== undefined && this.#open.size === 0) this.#stop();
  }

  /** Stops when the requests that it knows of have ended. @param drained is called then */
  drain(drained: () => void): void {
    this.#drained = drained;
    if (this.#open.size === 0) this.#stop();
  }

  /** Ends at once. Its permits stay assigned to it until its lease expires. */
  crash(): void {
    this.#isGone = true;
    const lost = [...this.#open];
    this.#open.clear();
    for (const call of lost) call.detach();
    for (const call of lost) call.unanswered();
  }

  /** Calls `ready` when it takes requests: once it knows its shares of limits. */
  whenReady(ready: () => void): void {
    if (this.#shares === undefined) {
      ready();
      return;
    }
    void this.#shares.settled().then(ready);
    // There may be nothing to share.
    this.#onResolved();
  }

  /**
   * Asks the limits that Envoy's own filter asks before admission, if the policy has any.
   *
   * @param answered is called exactly once, possibly before this returns
   */
  askLimits(request: AdmissionRequest, answered: (answer: LimitsAnswer) => void): void {
    const prepared = this.#prepare(request);
    if (prepared === undefined) {
      answered(passes);
      return;
    }
    this.#decider.ask(prepared, {
      hits: 1,
      deadlineMs: this.#calendar.nowMs + rateLimitTimeoutMs,
      query: undefined,
      decided: ({ isDenied, statuses }) => {
        if (!isDenied) return answered(passes);
        let retryUs = 0;
        for (const { isOver, durationUntilResetUs = 0 } of statuses) {
          if (isOver) retryUs = Math.max(retryUs, durationUntilResetUs);
        }
        answered({ kind: "denied", retryMs: retryUs / 1_000 });
      },
      // Envoy lets requests pass if there is no answer.
      failed: () => answered(passes),
    });
  }

  /** Returns the permits of a service, and its requests that hold one or wait for one. */
  occupancyOf(name: string): { limit: number; inUse: number; waiting: number } {
    const found = { limit: 0, inUse: 0, waiting: 0 };
    for (const service of this.admission.services()) {
      if (service.name !== name) continue;
      for (const { pool } of service.pools.all()) {
        found.limit += pool.limit(this.#calendar.nowMs);
        found.inUse += pool.inUseCount();
        found.waiting += pool.waitingCount;
      }
    }
    return found;
  }

  /** Prepares each distinct request once, because callers repeat requests. */
  #prepare(request: AdmissionRequest): PreparedQuery | undefined {
    const known = this.#prepared.get(request.headers);
    if (known !== undefined && this.#decider.isCurrent(known)) return known;
    if (known === undefined && this.#prepared.has(request.headers)) return undefined;
    const service = this.#serviceOf(request);
    const isAsked = service?.rateLimit !== undefined && !service.rateLimit.inExtProc;
    const query = isAsked ? serviceQuery(service, request)?.query : undefined;
    const prepared = query && this.#decider.prepare(query);
    this.#prepared.set(request.headers, prepared);
    return prepared;
  }

  #serviceOf({ serviceName = "" }: AdmissionRequest): ServicePolicy | undefined {
    return this.#policy.serviceIndex.named(serviceName)?.service;
  }

  #stop(): void {
    this.admission.close();
    void this.#shares?.stop();
    void this.#ledger?.close();
    this.#drained?.();
    this.#drained = undefined;
  }

  #createClock(onResolved: () => void): Clock {
    const calendar = this.#calendar;
    const resolving = (callback: () => void) => () => {
      if (this.#isGone) return;
      callback();
      onResolved();
    };
    return {
      monotonicMs: () => calendar.nowMs,
      epochUs: () => startUs + Math.floor((calendar.nowMs + this.#replica.skewMs) * 1_000),
      schedule: (delayMs, callback) => calendar.after(delayMs, resolving(callback)),
      // A turn sends to the store, which answers later, unless the store is bypassed.
      scheduleTurn: (callback) =>
        calendar.after(0, () => {
          if (this.#isGone) return;
          callback();
          if (this.#decider.isDegraded) onResolved();
        }),
    };
  }
}

function sharesOf(
  { permits, random, replicaCount }: SimulatedHeadgateParts,
  clock: Clock,
): PermitShares | undefined {
  if (permits === undefined) return undefined;
  return new PermitShares({ store: permits, clock, random, replicaCount });
}

/** Undefined if no limit counts calls in flight by key in the fleet. */
function ledgerOf(
  { policy, budgets, random, replicaCount }: SimulatedHeadgateParts,
  clock: Clock,
): StoreBudgetLedger | undefined {
  const isNeeded = policy.services.some(({ admission }) => {
    return admission?.maxInFlightPer?.scope === "fleet";
  });
  if (budgets === undefined || !isNeeded) return undefined;
  return new StoreBudgetLedger({ store: budgets, clock, random, replicaCount });
}
