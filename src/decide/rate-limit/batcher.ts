import type { Breaker } from "../../core/base/breaker.js";
import type { Clock } from "../../core/base/clock.js";
import { assert, type ErrorCode, toServiceError } from "../../core/base/errors.js";
import type { Charge } from "../../core/limits/bucket.js";
import {
  batchChargesMax,
  type LimitStore,
  type StoreOutcome,
  type StoreRequest,
  type StoreResult,
} from "../../store/limit-store.js";

interface BatcherParts {
  readonly store: LimitStore;
  readonly clock: Clock;
  readonly breaker: Breaker;
  /** Maximum duration of a store call, in milliseconds. Default 10. */
  readonly storeBudgetMs: number;
  /** Receives each failed batch and each state change of the circuit breaker. */
  readonly onEvent: (event: BatcherEvent) => void;
  /** Counters of the batches that are sent. */
  readonly counts: BatchCounts;
}

/** What was sent to the store so far. `DecisionCounters` documents each field. */
interface BatchCounts {
  batchCount: number;
  batchRequestCount: number;
  batchChargeCount: number;
  coalescedCount: number;
}

/** An event for the log. All are rare, except failed batches during an outage. */
export type BatcherEvent =
  | { readonly kind: "batchFailed"; readonly code: ErrorCode }
  | { readonly kind: "circuitOpened"; readonly code: ErrorCode }
  | { readonly kind: "circuitClosed" };

/** The store's result for a request and for all identical ones of the same batch. */
export type BatchOutcome =
  | {
      readonly kind: "decided";
      readonly result: StoreResult;
      /** The number of identical requests. */
      readonly askedCount: number;
      /** When the store call was sent and when its result was read, monotonic. */
      readonly sentMs: number;
      readonly receivedMs: number;
    }
  | { readonly kind: "failed"; readonly code: ErrorCode };

/** A request that waits for the store. */
export interface PendingRequest {
  /** Monotonic time until which it waits. Infinity: as long as the store call may take. */
  readonly deadlineMs: number;
  /**
   * Receives the result. Must not throw. Only the first call has an effect: a result that arrives
   * after the deadline is ignored.
   *
   * @param index position among the identical requests, from 0; the first ones are granted
   */
  settle(outcome: BatchOutcome, index: number): void;
}

/**
 * Groups identical requests of one event loop turn. Each set of repeatable charges has its own
 * slot. A slot holds only numbers, because slots live as long as the records of a key: a reference
 * to a request would keep it alive after its response, at a cost in garbage collection.
 */
export interface CoalescingSlot {
  turn: number;
  groupIndex: number;
}

/** Creates an empty slot. */
export function createSlot(): CoalescingSlot {
  return { turn: -1, groupIndex: 0 };
}

/** One store request on behalf of all identical requests of an event loop turn. */
class CoalescedRequest implements StoreRequest {
  readonly charges: readonly Charge[];
  waiting: PendingRequest[];

  constructor(charges: readonly Charge[], first: PendingRequest) {
    this.charges = charges;
    this.waiting = [first];
  }

  get multiplicity(): number {
    return this.waiting.length;
  }

  settle(outcome: BatchOutcome): void {
    const { waiting } = this;
    for (let index = 0; index < waiting.length; index += 1) waiting[index]?.settle(outcome, index);
  }
}

/** Maximum number of requests that wait for the end of the turn. Further ones fail as overload. */
export const waitingRequestsMax = 65_536;

/**
 * Collects the requests of one event loop turn and sends them to the store in one call, with
 * identical requests combined.
 *
 * Each request is answered by its own deadline, whatever the store does. A late result is dropped,
 * although the store may have charged the request by then.
 */
export class Batcher {
  readonly #parts: BatcherParts;
  #groups: CoalescedRequest[] = [];
  #waitingCount = 0;
  /** The earliest deadline among the requests that wait for the end of the turn. */
  #earliestMs = Number.POSITIVE_INFINITY;
  #turn = 0;
  readonly #onTurnEnd = (): void => this.#flush();

  constructor(parts: BatcherParts) {
    this.#parts = parts;
  }

  /**
   * Adds a request to the current batch. It is resolved with the store's result, with a failure at
   * its deadline or at the end of the store budget, or with OVERLOADED if the turn took so long
   * that the store was never called.
   *
   * @param slot combines identical repeatable requests; without a slot, the request is sent alone
   */
  ask(charges: readonly Charge[], waiting: PendingRequest, slot?: CoalescingSlot): void {
    if (this.#waitingCount >= waitingRequestsMax) {
      waiting.settle({ kind: "failed", code: "OVERLOADED" }, 0);
      return;
    }
    // A microtask is too early: the calls of one socket read arrive in several microtasks.
    if (this.#waitingCount === 0) this.#parts.clock.scheduleTurn(this.#onTurnEnd);
    this.#waitingCount += 1;
    if (waiting.deadlineMs < this.#earliestMs) this.#earliestMs = waiting.deadlineMs;
    if (slot?.turn === this.#turn) {
      const group = this.#groups[slot.groupIndex];
      if (group?.charges === charges) {
        group.waiting.push(waiting);
        return;
      }
    }
    const groupIndex = this.#groups.push(new CoalescedRequest(charges, waiting)) - 1;
    if (slot === undefined) return;
    slot.turn = this.#turn;
    slot.groupIndex = groupIndex;
  }

  #flush(): void {
    const groups = this.#groups;
    const earliestMs = this.#earliestMs;
    this.#groups = [];
    this.#waitingCount = 0;
    this.#earliestMs = Number.POSITIVE_INFINITY;
    this.#turn += 1;
    const nowMs = this.#parts.clock.monotonicMs();
    let batch: CoalescedRequest[] = [];
    let chargeCount = 0;
    for (const group of groups) {
      if (earliestMs <= nowMs) dropExpired(group, nowMs);
      if (group.waiting.length === 0) continue;
      if (chargeCount + group.charges.length > batchChargesMax && batch.length > 0) {
        void this.#send(batch, earliestMs);
        batch = [];
        chargeCount = 0;
      }
      batch.push(group);
      chargeCount += group.charges.length;
    }
    if (batch.length > 0) void this.#send(batch, earliestMs);
  }

  /** @param earliestMs no request of the batch has a deadline before this time */
  async #send(batch: readonly CoalescedRequest[], earliestMs: number): Promise<void> {
    const { store, clock, breaker, storeBudgetMs } = this.#parts;
    const sentMs = clock.monotonicMs();
    if (!breaker.admits(sentMs)) {
      settleAll(batch, "STORE_CIRCUIT_OPEN");
      return;
    }
    this.#count(batch);
    const deadlineMs = sentMs + storeBudgetMs;
    const disarm = earliestMs < deadlineMs ? this.#expireEarlier(batch, deadlineMs) : noTimer;
    try {
      const outcomes = await store.take(batch, deadlineMs);
      assert(outcomes.length === batch.length, "one outcome a request of the batch");
      if (breaker.succeeded()) this.#parts.onEvent({ kind: "circuitClosed" });
      const receivedMs = clock.monotonicMs();
      for (let i = 0; i < batch.length; i += 1) {
        const group = batch[i];
        const outcome = outcomes[i] ?? noOutcome;
        if (outcome.kind === "failed") group?.settle(outcome);
        else {
          const askedCount = group?.multiplicity ?? 0;
          const { result } = outcome;
          group?.settle({ kind: "decided", result, askedCount, sentMs, receivedMs });
        }
      }
    } catch (thrown) {
      this.#fail(batch, toServiceError(thrown).code);
    } finally {
      disarm();
    }
  }

  #count(batch: readonly CoalescedRequest[]): void {
    const { counts } = this.#parts;
    counts.batchCount += 1;
    counts.batchRequestCount += batch.length;
    for (const { charges, waiting } of batch) {
      counts.batchChargeCount += charges.length;
      counts.coalescedCount += waiting.length - 1;
    }
  }

  #fail(batch: readonly CoalescedRequest[], code: ErrorCode): void {
    const { breaker, clock, onEvent } = this.#parts;
    onEvent({ kind: "batchFailed", code });
    if (breaker.failed(clock.monotonicMs())) onEvent({ kind: "circuitOpened", code });
    settleAll(batch, code);
  }

  /** Answers requests whose deadline is before the store's, with one timer at a time. */
  #expireEarlier(batch: readonly CoalescedRequest[], storeDeadlineMs: number): () => void {
    const early: PendingRequest[] = [];
    for (const { waiting } of batch) {
      for (const one of waiting) if (one.deadlineMs < storeDeadlineMs) early.push(one);
    }
    if (early.length === 0) return noTimer;
    early.sort((one, other) => one.deadlineMs - other.deadlineMs);
    const { clock } = this.#parts;
    let next = 0;
    let cancel = noTimer;
    const arm = (): void => {
      const first = early[next];
      if (first === undefined) return;
      cancel = clock.schedule(Math.max(0, first.deadlineMs - clock.monotonicMs()), expire);
    };
    const expire = (): void => {
      const nowMs = clock.monotonicMs();
      for (; next < early.length; next += 1) {
        const one = early[next];
        if (one === undefined || one.deadlineMs > nowMs) break;
        one.settle({ kind: "failed", code: "STORE_TIMEOUT" }, 0);
      }
      arm();
    };
    arm();
    return () => cancel();
  }
}

const noOutcome: StoreOutcome = { kind: "failed", code: "STORE_PROTOCOL" };

/** Answers requests that expired before the store call, so that the store does not charge them. */
function dropExpired(group: CoalescedRequest, nowMs: number): void {
  if (group.waiting.every(({ deadlineMs }) => deadlineMs > nowMs)) return;
  const { waiting } = group;
  group.waiting = waiting.filter(({ deadlineMs }) => deadlineMs > nowMs);
  for (const one of waiting) {
    if (one.deadlineMs <= nowMs) one.settle({ kind: "failed", code: "OVERLOADED" }, 0);
  }
}

function settleAll(batch: readonly CoalescedRequest[], code: ErrorCode): void {
  for (const group of batch) group.settle({ kind: "failed", code });
}

function noTimer(): void {
  // No timer was set, so there is nothing to cancel.
}
