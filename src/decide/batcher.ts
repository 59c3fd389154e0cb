import type { Clock } from "../core/clock.js";
import { assert, type ErrorCode, toServiceError } from "../core/errors.js";
import type { Charge } from "../core/gcra.js";
import { batchChargesMax, type LimitStore, type StoreOutcome } from "../store/limit-store.js";
import type { Breaker } from "./breaker.js";

/** What a `Batcher` is made of. */
export interface BatcherParts {
  readonly store: LimitStore;
  readonly clock: Clock;
  readonly breaker: Breaker;
  /** The longest a store call may take, in milliseconds. Default 10. */
  readonly storeBudgetMs: number;
  /** Told of every batch that failed, and of every change of the breaker. */
  readonly onEvent: (event: BatcherEvent) => void;
}

/** What the batcher has to say; each is rare except a failed batch during an outage. */
export type BatcherEvent =
  | { readonly kind: "batchFailed"; readonly code: ErrorCode }
  | { readonly kind: "circuitOpened"; readonly code: ErrorCode }
  | { readonly kind: "circuitClosed" };

interface Waiting {
  readonly charges: readonly Charge[];
  readonly deadlineMs: number;
  /** Answers the request; only the first answer counts. */
  readonly settle: (outcome: StoreOutcome) => void;
}

/** The most requests that wait for the turn to end; more are answered as a failed store at once. */
export const waitingRequestsMax = 65_536;

/**
 * Collects the requests of one turn of the event loop and asks the store once for all of them.
 *
 * Every request is answered by its own deadline, whatever the store does: a late answer is dropped,
 * although the store may have charged by then.
 */
export class Batcher {
  readonly #parts: BatcherParts;
  #waiting: Waiting[] = [];

  constructor(parts: BatcherParts) {
    this.#parts = parts;
  }

  /** Resolves with the store's answer, or with a failure at `deadlineMs` or the store's budget. */
  ask(charges: readonly Charge[], deadlineMs: number): Promise<StoreOutcome> {
    return new Promise((resolve) => {
      if (this.#waiting.length >= waitingRequestsMax) {
        resolve({ kind: "failed", code: "STORE_TIMEOUT" });
        return;
      }
      // A microtask would be too early: the calls of one socket read arrive over several of them.
      if (this.#waiting.length === 0) this.#parts.clock.scheduleTurn(() => this.#flush());
      this.#waiting.push({ charges, deadlineMs, settle: resolve });
    });
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    let batch: Waiting[] = [];
    let chargeCount = 0;
    for (const one of waiting) {
      if (chargeCount + one.charges.length > batchChargesMax && batch.length > 0) {
        void this.#send(batch);
        batch = [];
        chargeCount = 0;
      }
      batch.push(one);
      chargeCount += one.charges.length;
    }
    if (batch.length > 0) void this.#send(batch);
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    const { store, clock, breaker, storeBudgetMs } = this.#parts;
    const sentMs = clock.monotonicMs();
    if (!breaker.admits(sentMs)) {
      for (const one of batch) one.settle({ kind: "failed", code: "STORE_CIRCUIT_OPEN" });
      return;
    }
    const deadlineMs = sentMs + storeBudgetMs;
    const disarm = this.#expireEarlier(batch, deadlineMs);
    try {
      const outcomes = await store.take(
        batch.map(({ charges }) => ({ charges, multiplicity: 1 })),
        deadlineMs,
      );
      assert(outcomes.length === batch.length, "one result a request of the batch");
      if (breaker.succeeded()) this.#parts.onEvent({ kind: "circuitClosed" });
      for (let i = 0; i < batch.length; i += 1) {
        const one = batch[i];
        const outcome = outcomes[i];
        if (one !== undefined && outcome !== undefined) one.settle(outcome);
      }
    } catch (thrown) {
      const { code } = toServiceError(thrown);
      this.#fail(batch, code);
    } finally {
      disarm();
    }
  }

  #fail(batch: readonly Waiting[], code: ErrorCode): void {
    const { breaker, clock, onEvent } = this.#parts;
    onEvent({ kind: "batchFailed", code });
    if (breaker.failed(clock.monotonicMs())) onEvent({ kind: "circuitOpened", code });
    for (const one of batch) one.settle({ kind: "failed", code });
  }

  /** Answers requests whose own deadline is before the store's, with one timer at a time. */
  #expireEarlier(batch: readonly Waiting[], storeDeadlineMs: number): () => void {
    const { clock } = this.#parts;
    const early = batch
      .filter((one) => one.deadlineMs < storeDeadlineMs)
      .sort((one, other) => one.deadlineMs - other.deadlineMs);
    if (early.length === 0) return noTimer;
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

function noTimer(): void {
  // Nothing was armed, so nothing is to be cancelled.
}
