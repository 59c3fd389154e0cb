import type { Clock } from "../core/clock.js";
import { type ErrorCode, ServiceError, toServiceError } from "../core/errors.js";
import {
  type DecidedLimit,
  type DescriptorVerdict,
  descriptorVerdict,
  unlimitedVerdict,
  unmatchedVerdict,
  type Verdict,
} from "../core/verdict.js";
import type { Policy } from "../policy/policy.js";
import type { LimitStore, StoreResult } from "../store/limit-store.js";
import { Batcher, type BatcherEvent } from "./batcher.js";
import { Breaker } from "./breaker.js";
import type { DecisionCounters, RuleCounters } from "./counters.js";
import { decideWithoutStore } from "./fallback.js";
import { type DecidedRequest, type Plan, type PlannedDescriptor, planQuery } from "./plan.js";
import type { PolicySource } from "./policy-source.js";
import type { RateLimitQuery } from "./query.js";

/** What a `Decider` is made of. */
export interface DeciderParts {
  readonly policies: PolicySource;
  readonly store: LimitStore;
  /** Makes the empty embedded store that `on_store_failure: local` uses until the store is back. */
  readonly createLocalStore: () => LimitStore;
  readonly clock: Clock;
  readonly counters: DecisionCounters;
  /** The longest a store call may take, in milliseconds. Default 10. */
  readonly storeBudgetMs: number;
  /** How many replicas share the limits now, at least 1. */
  readonly replicaCount: () => number;
  readonly onEvent: (event: DeciderEvent) => void;
}

/** What happened to the store, for logs. */
export type DeciderEvent = BatcherEvent;

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
  #localStore: LimitStore;

  constructor(parts: DeciderParts) {
    this.#parts = parts;
    this.#localStore = parts.createLocalStore();
    const { store, clock, storeBudgetMs } = parts;
    const onEvent = (event: BatcherEvent): void => this.#noteStoreEvent(event);
    this.#batcher = new Batcher({ store, clock, storeBudgetMs, breaker: this.#breaker, onEvent });
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
   *   `on_store_failure: error`, the STORE_ code of the failure
   */
  async decide(query: RateLimitQuery, deadlineMs: number): Promise<Verdict> {
    const { clock, counters, policies } = this.#parts;
    const startMs = clock.monotonicMs();
    try {
      const policy = policies.current();
      if (policy === undefined) throw new ServiceError("POLICY_MISSING");
      if (deadlineMs <= startMs) throw new ServiceError("DEADLINE_PASSED");
      const plan = planQuery(policy, query);
      const budgetMs = (deadlineMs - startMs) * callerBudgetRatio;
      const request = await this.#decidePlan(plan, startMs + budgetMs);
      const verdict = present(plan, request);
      this.#count(policy, plan, { request, verdict });
      return verdict;
    } catch (thrown) {
      counters.countFailure(toServiceError(thrown).code);
      throw thrown;
    } finally {
      counters.countLatency(clock.monotonicMs() - startMs);
    }
  }

  async #decidePlan(plan: Plan, deadlineMs: number): Promise<DecidedRequest> {
    if (plan.asks.length === 0) return { isDenied: false, decided: [], nowUs: 0 };
    const charges = plan.asks.map((ask) => ask.charge);
    const outcome = await this.#batcher.ask(charges, deadlineMs);
    if (outcome.kind === "decided") return decidedByStore(plan, outcome.result);
    return this.#fallBack(plan, outcome.code);
  }

  async #fallBack(plan: Plan, code: ErrorCode): Promise<DecidedRequest> {
    const { counters, replicaCount } = this.#parts;
    let isFailing = false;
    for (const { limit } of plan.asks) {
      counters.countFallback(limit.onStoreFailure, code);
      if (limit.onStoreFailure === "error") isFailing = true;
    }
    if (isFailing) throw new ServiceError(code);
    return decideWithoutStore(plan, this.#localStore, replicaCount());
  }

  #noteStoreEvent(event: BatcherEvent): void {
    if (event.kind === "batchFailed") this.#parts.counters.countStoreFailure(event.code);
    // What was used locally is dropped: the store's own state counts again.
    if (event.kind === "circuitClosed") this.#localStore = this.#parts.createLocalStore();
    this.#parts.onEvent(event);
  }

  #count(
    policy: Policy,
    plan: Plan,
    { request, verdict }: { readonly request: DecidedRequest; readonly verdict: Verdict },
  ): void {
    const { counters } = this.#parts;
    if (verdict.isDenied) counters.deniedCount += 1;
    else counters.okCount += 1;
    if (!plan.isDomainKnown) {
      counters.unknownDomainCount += 1;
      return;
    }
    const byRule = counters.forPolicy(policy);
    plan.descriptors.forEach((descriptor, i) => {
      if (descriptor.kind === "unmatched") {
        counters.unmatchedDescriptorCount += 1;
        return;
      }
      const outcome = descriptorOutcome(descriptor, verdict.statuses[i], request);
      if (descriptor.rule !== undefined) countRule(byRule[descriptor.rule.index], outcome);
      else if (outcome === "over") counters.overrideOverCount += 1;
      else counters.overrideOkCount += 1;
    });
  }
}

function decidedByStore(plan: Plan, result: StoreResult): DecidedRequest {
  const decided = plan.asks.map(({ limit, charge }, i): DecidedLimit => {
    const found = result.results[i];
    if (found === undefined) throw new ServiceError("STORE_PROTOCOL");
    return { limit, charge, result: found };
  });
  return { isDenied: result.grantedCount === 0, decided, nowUs: result.nowUs };
}

function present(plan: Plan, request: DecidedRequest): Verdict {
  const statuses = plan.descriptors.map((descriptor): DescriptorVerdict => {
    if (descriptor.kind === "unmatched") return unmatchedVerdict;
    if (descriptor.kind === "unlimited") return unlimitedVerdict;
    return descriptorVerdict(decidedOf(descriptor, request), request.nowUs);
  });
  return { isDenied: request.isDenied, statuses };
}

function decidedOf(
  { firstCharge, chargeCount }: Extract<PlannedDescriptor, { kind: "limited" }>,
  { decided }: DecidedRequest,
): readonly DecidedLimit[] {
  return decided.slice(firstCharge, firstCharge + chargeCount);
}

type Outcome = "ok" | "over" | "shadowOver";

function descriptorOutcome(
  descriptor: PlannedDescriptor,
  status: DescriptorVerdict | undefined,
  request: DecidedRequest,
): Outcome {
  if (status?.isOver === true) return "over";
  if (descriptor.kind !== "limited") return "ok";
  return decidedOf(descriptor, request).some((one) => one.result.isOver) ? "shadowOver" : "ok";
}

function countRule(counters: RuleCounters | undefined, outcome: Outcome): void {
  if (counters !== undefined) counters[outcome] += 1;
}
