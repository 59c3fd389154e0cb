import type { Breaker } from "../core/breaker.js";
import type { Clock } from "../core/clock.js";
import { assert, type ErrorCode, toServiceError } from "../core/errors.js";
import type { Charge } from "../core/gcra.js";
import { batchChargesMax, type LimitStore, type StoreResult } from "../store/limit-store.js";

/** What a `Batcher` is made of. */
export interface BatcherParts {
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
export interface BatchCounts {
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

/** How the store answered for one request. */
export type BatchOutcome =
  | {
      readonly kind: "decided";
      /** For all identical requests of the turn, of which this one is the `index`-th from 0. */
      readonly result: StoreResult;
      readonly index: number;
      /** How many asked the same. */
      readonly askedCount: number;
      /** When the store was asked, monotonic. */
      readonly sentMs: number;
    }
  | { readonly kind: "failed"; readonly code: ErrorCode };

/** Where identical requests of one turn meet; each thing that may be asked twice has its own. */
export interface CoalescingSlot {
  turn: number;
  group: Group | undefined;
}

/** A slot in which nothing waits yet. */
export function createSlot(): CoalescingSlot {
  return { turn: -1, group: undefined };
}

/** What is asked of the store once, for everybody who asks it in this turn. */
interface Group {
  readonly charges: readonly Charge[];
  waiting: Waiting[];
}

interface Waiting {
  readonly deadlineMs: number;
  /** Answers the request; only the first answer counts. */
  readonly settle: (outcome: BatchOutcome) => void;
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
  #groups: Group[] = [];
  #waitingCount = 0;
  #turn = 0;

  constructor(parts: BatcherParts) {
    this.#parts = parts;
  }

  /** Requests that wait for the turn to end. */
  get waitingCount(): number {
    return this.#waitingCount;
  }

  /**
   * Resolves with the store's answer, or with a failure at `deadlineMs` or the store's budget;
   * with OVERLOADED when the store was not asked, because the turn took longer than that.
   *
   * @param slot where the same repeatable charges are asked again; without one they stand alone
   */
  ask(
    charges: readonly Charge[],
    deadlineMs: number,
    slot?: CoalescingSlot,
  ): Promise<BatchOutcome> {
    return new Promise((resolve) => {
      if (this.#waitingCount >= waitingRequestsMax) {
        resolve({ kind: "failed", code: "OVERLOADED" });
        return;
      }
      // A microtask would be too early: the calls of one socket read arrive over several of them.
      if (this.#waitingCount === 0) this.#parts.clock.scheduleTurn(() => this.#flush());
      this.#waitingCount += 1;
      const waiting = { deadlineMs, settle: resolve };
      if (slot?.turn === this.#turn && slot.group?.charges === charges) {
        slot.group.waiting.push(waiting);
        return;
      }
      const group = { charges, waiting: [waiting] };
      this.#groups.push(group);
      if (slot === undefined) return;
      slot.turn = this.#turn;
      slot.group = group;
    });
  }

  #flush(): void {
    const groups = this.#groups;
    this.#groups = [];
    this.#waitingCount = 0;
    this.#turn += 1;
    const nowMs = this.#parts.clock.monotonicMs();
    let batch: Group[] = [];
    let chargeCount = 0;
    for (const group of groups) {
      dropExpired(group, nowMs);
      if (group.waiting.length === 0) continue;
      if (chargeCount + group.charges.length > batchChargesMax && batch.length > 0) {
        void this.#send(batch);
        batch = [];
        chargeCount = 0;
      }
      batch.push(group);
      chargeCount += group.charges.length;
    }
    if (batch.length > 0) void this.#send(batch);
  }

  async #send(batch: readonly Group[]): Promise<void> {
    const { store, clock, breaker, storeBudgetMs } = this.#parts;
    const sentMs = clock.monotonicMs();
    if (!breaker.admits(sentMs)) {
      settleAll(batch, "STORE_CIRCUIT_OPEN");
      return;
    }
    this.#count(batch);
    const deadlineMs = sentMs + storeBudgetMs;
    const disarm = this.#expireEarlier(batch, deadlineMs);
    try {
      const outcomes = await store.take(
        batch.map(({ charges, waiting }) => ({ charges, multiplicity: waiting.length })),
        deadlineMs,
      );
      assert(outcomes.length === batch.length, "one outcome a request of the batch");
      if (breaker.succeeded()) this.#parts.onEvent({ kind: "circuitClosed" });
      batch.forEach(({ waiting }, i) => {
        const outcome = outcomes[i];
        if (outcome?.kind !== "decided") {
          for (const one of waiting) one.settle(outcome ?? noOutcome);
          return;
        }
        const { result } = outcome;
        const askedCount = waiting.length;
        for (let index = 0; index < askedCount; index += 1) {
          waiting[index]?.settle({ kind: "decided", result, index, askedCount, sentMs });
        }
      });
    } catch (thrown) {
      this.#fail(batch, toServiceError(thrown).code);
    } finally {
      disarm();
    }
  }

  #count(batch: readonly Group[]): void {
    const { counts } = this.#parts;
    counts.batchCount += 1;
    counts.batchRequestCount += batch.length;
    for (const { charges, waiting } of batch) {
      counts.batchChargeCount += charges.length;
      counts.coalescedCount += waiting.length - 1;
    }
  }

  #fail(batch: readonly Group[], code: ErrorCode): void {
    const { breaker, clock, onEvent } = this.#parts;
    onEvent({ kind: "batchFailed", code });
    if (breaker.failed(clock.monotonicMs())) onEvent({ kind: "circuitOpened", code });
    settleAll(batch, code);
  }

  /** Answers requests whose own deadline is before the store's, with one timer at a time. */
  #expireEarlier(batch: readonly Group[], storeDeadlineMs: number): () => void {
    const early: Waiting[] = [];
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
        one.settle({ kind: "failed", code: "STORE_TIMEOUT" });
      }
      arm();
    };
    arm();
    return () => cancel();
  }
}

const noOutcome: BatchOutcome = { kind: "failed", code: "STORE_PROTOCOL" };

/** Answers those whose time was over before the store was asked: it must not charge for them. */
function dropExpired(group: Group, nowMs: number): void {
  if (group.waiting.every(({ deadlineMs }) => deadlineMs > nowMs)) return;
  const { waiting } = group;
  group.waiting = waiting.filter(({ deadlineMs }) => deadlineMs > nowMs);
  for (const one of waiting) {
    if (one.deadlineMs <= nowMs) one.settle({ kind: "failed", code: "OVERLOADED" });
  }
}

function settleAll(batch: readonly Group[], code: ErrorCode): void {
  for (const { waiting } of batch) for (const one of waiting) one.settle({ kind: "failed", code });
}

function noTimer(): void {
  // Nothing was armed, so nothing is to be cancelled.
}
