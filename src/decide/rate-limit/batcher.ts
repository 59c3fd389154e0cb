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
  /** The longest a store call may take, in milliseconds. Default 10. */
  readonly storeBudgetMs: number;
  /** Told of every batch that failed, and of every change of the breaker. */
  readonly onEvent: (event: BatcherEvent) => void;
  /** Counts what is sent. */
  readonly counts: BatchCounts;
}

/** How much was sent to the store so far; `DecisionCounters` says what each is. */
interface BatchCounts {
  batchCount: number;
  batchRequestCount: number;
  batchChargeCount: number;
  coalescedCount: number;
}

/** What the batcher has to say; each is rare except a failed batch during an outage. */
export type BatcherEvent =
  | { readonly kind: "batchFailed"; readonly code: ErrorCode }
  | { readonly kind: "circuitOpened"; readonly code: ErrorCode }
  | { readonly kind: "circuitClosed" };

/** How the store answered for a request, and for all that asked the same in its turn. */
export type BatchOutcome =
  | {
      readonly kind: "decided";
      readonly result: StoreResult;
      /** How many asked the same. */
      readonly askedCount: number;
      /** When the store was asked and when its answer was read, monotonic. */
      readonly sentMs: number;
      readonly receivedMs: number;
    }
  | { readonly kind: "failed"; readonly code: ErrorCode };

/** A request that waits for the store. */
export interface PendingRequest {
  /** Until when it waits, monotonic; Infinity for as long as the store may take. */
  readonly deadlineMs: number;
  /**
   * Takes the answer; must not throw. Only the first call counts: an answer that comes after the
   * deadline finds the request settled.
   *
   * @param index its place, from 0, among those that asked the same: the first ones are granted
   */
  settle(outcome: BatchOutcome, index: number): void;
}

/**
 * Where identical requests of one turn meet; each thing that may be asked twice has its own.
 * Numbers only: slots live as long as what is known of a key, and a reference to what was asked
 * would keep every call alive past its answer, which the collector pays for.
 */
export interface CoalescingSlot {
  turn: number;
  groupIndex: number;
}

/** A slot in which nothing waits yet. */
export function createSlot(): CoalescingSlot {
  return { turn: -1, groupIndex: 0 };
}

/** What is asked of the store once, for everybody who asks it in this turn. */
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

/** The most requests that wait for the turn to end; more are answered as an overload at once. */
export const waitingRequestsMax = 65_536;

/**
 * Collects the requests of one turn of the event loop and asks the store once for all of them,
 * identical ones together.
 *
 * Every request is answered by its own deadline, whatever the store does: a late answer is dropped,
 * although the store may have charged by then.
 */
export class Batcher {
  readonly #parts: BatcherParts;
  #groups: CoalescedRequest[] = [];
  #waitingCount = 0;
  /** The earliest deadline of those that wait for the turn to end. */
  #earliestMs = Number.POSITIVE_INFINITY;
  #turn = 0;
  readonly #onTurnEnd = (): void => this.#flush();

  constructor(parts: BatcherParts) {
    this.#parts = parts;
  }

  /**
   * Settles the request with the store's answer, or with a failure at its deadline or the store's
   * budget; with OVERLOADED when the store was not asked, because the turn took longer than that.
   *
   * @param slot where the same repeatable charges are asked again; without one they stand alone
   */
  ask(charges: readonly Charge[], waiting: PendingRequest, slot?: CoalescingSlot): void {
    if (this.#waitingCount >= waitingRequestsMax) {
      waiting.settle({ kind: "failed", code: "OVERLOADED" }, 0);
      return;
    }
    // A microtask would be too early: the calls of one socket read arrive over several of them.
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

  /** @param earliestMs a time before which nobody of the batch has to be answered */
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

  /** Answers requests whose own deadline is before the store's, with one timer at a time. */
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

/** Answers those whose time was over before the store was asked: it must not charge for them. */
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
  // Nothing was armed, so nothing is to be cancelled.
}
