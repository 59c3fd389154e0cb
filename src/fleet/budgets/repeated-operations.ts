import { backoffMs } from "../../core/base/backoff.js";
import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import type { ErrorCode } from "../../core/base/errors.js";
import type { ReservedEntry, SettleResult } from "../../core/budgets/account.js";
import type { ReservationId, Settlement } from "../../core/budgets/budget-ledger.js";
import { LinkedList } from "../../core/collections/linked-list.js";
import {
  type BudgetOperation,
  type BudgetOutcome,
  budgetOperationsMax,
  lateSettlementMsMax,
} from "../../store/coordination/budget-store.js";

/** Maximum settlements that wait. Beyond it, the oldest are dropped and not charged. */
export const queuedSettlementsMax = 100_000;

/** Timeout of a store call that contains only settlements, in milliseconds. */
export const settleTimeoutMs = 1_000;

/**
 * Maximum time that a settlement without a reservation is repeated, in milliseconds. During this
 * time, the store knows whether it was applied. Later, it could be charged twice.
 */
const unreservedRepeatMsMax = lateSettlementMsMax - 60_000;

/** Backoff after failed calls: long enough for a store that recovers under load. */
const repeatBackoff = { initialMs: 100, maxMs: 5_000, growthFactor: 2, isJittered: true };

/** A settlement in progress. */
export interface Settling {
  readonly settlement: Settlement;
  readonly settled: ((result: SettleResult) => void) | undefined;
  /** Time of the first sending, monotonic. Undefined until then. */
  sentMs: number | undefined;
}

/** Result of a call to the store. */
export type AppliedBatch =
  /** One outcome for each operation. */
  | { readonly kind: "applied"; readonly outcomes: readonly BudgetOutcome[] }
  | { readonly kind: "failed"; readonly code: ErrorCode };

interface RepeatedOperationsParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly apply: (
    operations: readonly BudgetOperation[],
    deadlineMs: number,
  ) => Promise<AppliedBatch>;
  readonly settled: (settling: Settling, outcome: BudgetOutcome) => void;
  readonly dropped: (settling: Settling) => void;
}

/**
 * Operations that the store has not answered: settlements, and reservations of calls that were
 * admitted without it. They are sent one batch at a time, with growing waits, until it answers.
 */
export class RepeatedOperations {
  readonly #parts: RepeatedOperationsParts;
  readonly #settlements = new LinkedList<Settling>();
  /** By id. An entry is removed when its call ends. */
  readonly #reservations = new Map<ReservationId, readonly ReservedEntry[]>();
  #failureCount = 0;
  #cancelWait: Cancel | undefined;
  /** The calls in progress. */
  #sending: Promise<void> | undefined;
  #isStopped = false;

  constructor(parts: RepeatedOperationsParts) {
    this.#parts = parts;
  }

  /** Number of settlements that wait, 0 to `queuedSettlementsMax`. */
  get settlementCount(): number {
    return this.#settlements.count;
  }

  settle(settling: Settling): void {
    this.#settlements.push(settling);
    const { oldest } = this.#settlements;
    if (this.#settlements.count > queuedSettlementsMax && oldest !== undefined) {
      this.#settlements.remove(oldest);
      this.#parts.dropped(oldest.value);
    }
    this.#schedule();
  }

  /** Reports a call in flight to the store, whether the store has room or not. */
  reserve(id: ReservationId, entries: readonly ReservedEntry[]): void {
    this.#reservations.set(id, entries);
    this.#schedule();
  }

  /** Removes a reservation whose call has ended. Its settlement contains everything. */
  forget(id: ReservationId): void {
    this.#reservations.delete(id);
  }

  /** Continues at once, because the store answers again. */
  wake(): void {
    this.#failureCount = 0;
    if (this.#cancelWait === undefined) return;
    this.#cancelWait();
    this.#cancelWait = undefined;
    this.#schedule();
  }

  /** Sends settlements until none is left, the store fails, or `untilMs`. Nothing is sent later. */
  async stop(untilMs: number): Promise<void> {
    this.#isStopped = true;
    this.#cancelWait?.();
    this.#cancelWait = undefined;
    this.#reservations.clear();
    await this.#sending;
    while (this.#settlements.count > 0 && this.#parts.clock.monotonicMs() < untilMs) {
      if (!(await this.#send())) return;
    }
  }

  #schedule(): void {
    const isIdle = this.#settlements.count + this.#reservations.size === 0;
    const isBusy = this.#cancelWait !== undefined || this.#sending !== undefined;
    if (isIdle || isBusy || this.#isStopped) return;
    const { clock, random } = this.#parts;
    const failureCount = this.#failureCount;
    const waitMs = failureCount > 0 ? backoffMs(repeatBackoff, failureCount, random.next()) : 0;
    this.#cancelWait = clock.schedule(waitMs, () => {
      this.#cancelWait = undefined;
      this.#sending = this.#sendAll().finally(() => {
        this.#sending = undefined;
        this.#schedule();
      });
    });
  }

  async #sendAll(): Promise<void> {
    let isAnswered = true;
    while (isAnswered && !this.#isStopped) {
      if (this.#settlements.count + this.#reservations.size === 0) return;
      isAnswered = await this.#send();
    }
  }

  /** Sends one batch. @returns whether the store answered */
  async #send(): Promise<boolean> {
    const { apply, clock, settled } = this.#parts;
    const settlements = this.#takeSettlements(clock.monotonicMs());
    // They stay until they are answered, unless their calls end.
    const reservations = [...this.#reservations].slice(0, budgetOperationsMax - settlements.length);
    const operations = [...settlements.map(settleOperation), ...reservations.map(reserveOperation)];
    const applied = await apply(operations, clock.monotonicMs() + settleTimeoutMs);
    if (applied.kind === "failed") {
      this.#failureCount += 1;
      for (const settling of settlements) this.settle(settling);
      return false;
    }
    this.#failureCount = 0;
    for (const [id] of reservations) this.#reservations.delete(id);
    for (const [i, settling] of settlements.entries()) {
      const outcome = applied.outcomes[i];
      if (outcome !== undefined) settled(settling, outcome);
    }
    return true;
  }

  #takeSettlements(nowMs: number): readonly Settling[] {
    const taken: Settling[] = [];
    for (let node = this.#settlements.oldest; node !== undefined; node = this.#settlements.oldest) {
      if (taken.length === budgetOperationsMax) break;
      this.#settlements.remove(node);
      const settling = node.value;
      const { sentMs, settlement } = settling;
      settling.sentMs ??= nowMs;
      const isOld = sentMs !== undefined && nowMs - sentMs > unreservedRepeatMsMax;
      if (isOld && settlement.unreserved !== undefined) this.#parts.dropped(settling);
      else taken.push(settling);
    }
    return taken;
  }
}

/** Returns a settlement as an operation of a batch. */
export function settleOperation({ settlement }: Settling): BudgetOperation {
  return { kind: "settle", ...settlement };
}

function reserveOperation([id, entries]: readonly [ReservationId, readonly ReservedEntry[]]) {
  const unenforced = entries.map((entry) => ({ ...entry, isEnforced: false }));
  return { kind: "reserve", id, entries: unenforced } as const;
}
