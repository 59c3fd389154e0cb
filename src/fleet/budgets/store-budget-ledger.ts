import { Breaker } from "../../core/base/breaker.js";
import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { assert, type ErrorCode, toServiceError } from "../../core/base/errors.js";
import {
  amountMax,
  entriesMax,
  type ReservedEntry,
  type SettleResult,
} from "../../core/budgets/account.js";
import type {
  BudgetLedger,
  ReservationId,
  ReserveAnswer,
  Settlement,
  UsageEntry,
} from "../../core/budgets/budget-ledger.js";
import { holderOf, reservationId } from "../../core/budgets/reservation-id.js";
import {
  type BudgetOperation,
  type BudgetOutcome,
  type BudgetStore,
  budgetOperationsMax,
} from "../../store/coordination/budget-store.js";
import { BudgetLease } from "./budget-lease.js";
import { EarlySettlements } from "./early-settlements.js";
import { LocalBudgets } from "./local-budgets.js";
import { PendingUsage } from "./pending-usage.js";
import {
  type AppliedBatch,
  RepeatedOperations,
  type Settling,
  settleOperation,
  settleTimeoutMs,
} from "./repeated-operations.js";

/** A change of a replica's part of the ledger, for logs. Each is reported once until it changes. */
export type BudgetLedgerEvent =
  /** From now on, `onStoreFailure` of the budgets decides. */
  | { readonly kind: "budgetStoreLost"; readonly code: ErrorCode }
  | { readonly kind: "budgetStoreFound" }
  /** The queue of settlements is full: the oldest are dropped, and their calls not charged. */
  | { readonly kind: "settlementsDropped" };

/** Counts of a ledger since its process began. */
export interface BudgetLedgerCounts {
  /** Reservations that the store made. */
  reservedCount: number;
  /** Reservations that the store refused, because an enforced budget had no room. */
  refusedCount: number;
  /** Reservations that the store did not decide in time. The next two counts are its parts. */
  failedCount: number;
  failureAdmittedCount: number;
  failureRefusedCount: number;
  /** Settlements that were charged. */
  settledCount: number;
  /** Settlements that were charged after the lease of their replica had expired. */
  lateCount: number;
  /** Settlements of calls that were settled before, or that the store has forgotten. */
  unknownCount: number;
  /** Settlements that were not charged: the queue, or the store, was full. */
  droppedCount: number;
  /** Reservations of lost replicas that this one has released or charged. */
  expiredCount: number;
  /** Calls to the store with operations, and operations in them. */
  batchCount: number;
  operationCount: number;
}

interface StoreBudgetLedgerOptions {
  readonly store: Pick<BudgetStore, "apply" | "renew" | "leave" | "addUsage">;
  readonly clock: Clock;
  readonly random: Random;
  /** Replicas that decide, at least 1. Divides budgets while the store does not answer. */
  readonly replicaCount: () => number;
  /** How long a reservation waits for the store, in milliseconds. Default 10. */
  readonly reserveTimeoutMs?: number;
  /** How long the store keeps reservations of a silent replica, in milliseconds. Default 30,000. */
  readonly leaseMs?: number;
  /** Interval of lease renewals and of usage reports, in milliseconds. Default 5,000. */
  readonly heartbeatMs?: number;
  readonly onEvent?: (event: BudgetLedgerEvent) => void;
}

/** Default of `StoreBudgetLedgerOptions.reserveTimeoutMs`. */
export const defaultReserveTimeoutMs = 10;

const defaultLeaseMs = 30_000;
const defaultHeartbeatMs = 5_000;

/** Maximum batches in flight. Further reservations fail as OVERLOADED. */
export const budgetBatchesInFlightMax = 64;

/** Maximum reservations that wait for the end of a turn. Further ones fail as OVERLOADED. */
const waitingReservationsMax = 16_384;

/** Maximum remembered calls in flight. Beyond it, the oldest are forgotten and not settled. */
const openCallsMax = 1_000_000;

/** Maximum time that a stopping replica spends on the last settlements, in milliseconds. */
const closeMsMax = 2_000;

/** A reservation that waits for its answer. */
interface PendingReservation {
  readonly id: ReservationId;
  readonly entries: readonly ReservedEntry[];
  readonly deadlineMs: number;
  readonly answered: (answer: ReserveAnswer) => void;
  isAnswered: boolean;
}

/** An operation of a turn. */
type Operation = PendingReservation | Settling;

/** A call of this replica that has not been settled. */
interface OpenCall {
  readonly entries: readonly ReservedEntry[];
  /** Whether it was admitted without the store. Its settlement then contains the entries. */
  readonly isLocal: boolean;
}

/**
 * The replica's side of the ledger, on top of a store. All operations of one turn of the event loop
 * are one call to the store.
 *
 * A reservation is sent once. If the store does not answer, the settlement corrects whatever the
 * store did: it contains the entries, so the store charges them if there is no reservation, and
 * makes none later. Settlements are repeated until the store answers. Those of other replicas'
 * calls have no entries, and are also repeated while the store does not know the call.
 */
export class StoreBudgetLedger implements BudgetLedger {
  readonly counts: BudgetLedgerCounts = {
    reservedCount: 0,
    refusedCount: 0,
    failedCount: 0,
    failureAdmittedCount: 0,
    failureRefusedCount: 0,
    settledCount: 0,
    lateCount: 0,
    unknownCount: 0,
    droppedCount: 0,
    expiredCount: 0,
    batchCount: 0,
    operationCount: 0,
  };
  /** Prefix of the ids of this replica's reservations. */
  readonly holder: string;
  readonly #options: StoreBudgetLedgerOptions;
  readonly #leaseMs: number;
  readonly #breaker = new Breaker();
  readonly #local: LocalBudgets;
  readonly #usage: PendingUsage;
  readonly #lease: BudgetLease;
  readonly #repeated: RepeatedOperations;
  readonly #early: EarlySettlements;
  readonly #open = new Map<ReservationId, OpenCall>();
  #reservations: PendingReservation[] = [];
  #settlements: Settling[] = [];
  #idCount = 0;
  #batchesInFlight = 0;
  #isTurnScheduled = false;
  #isLost = false;
  #isDropping = false;
  #isClosed = false;

  constructor(options: StoreBudgetLedgerOptions) {
    const { store, clock, random, replicaCount } = options;
    const { leaseMs = defaultLeaseMs, heartbeatMs = defaultHeartbeatMs } = options;
    this.#options = options;
    this.#leaseMs = leaseMs;
    this.holder = random.id();
    const { holder } = this;
    this.#local = new LocalBudgets(replicaCount);
    this.#usage = new PendingUsage({ store, clock, holder });
    this.#lease = new BudgetLease({
      ...{ store, clock, holder, leaseMs, heartbeatMs },
      onBeat: (expiredCount) => {
        this.counts.expiredCount += expiredCount;
        void this.#usage.flush();
      },
    });
    this.#repeated = new RepeatedOperations({
      clock,
      random,
      apply: (operations, deadlineMs) => this.#apply(operations, deadlineMs),
      settled: (settling, outcome) => this.#noteSettled(settling, outcome),
      dropped: (settling) => this.#noteDropped(settling),
    });
    this.#early = new EarlySettlements(clock, (settling) => this.#repeated.settle(settling));
  }

  /** Number of this replica's calls in flight. */
  get openCount(): number {
    return this.#open.size;
  }

  /**
   * Number of settlements that the store has not answered, or whose reservation it does not have
   * yet. At most `queuedSettlementsMax` and `earlySettlementsMax` wait.
   */
  get queuedCount(): number {
    return this.#repeated.settlementCount + this.#settlements.length + this.#early.count;
  }

  /** Number of usage report rows that the store does not have yet. */
  get usageRowCount(): number {
    return this.#usage.rowCount;
  }

  /** Whether the store is known to be unreachable, so that `onStoreFailure` decides at once. */
  get isAway(): boolean {
    return this.#breaker.isOpen;
  }

  reserve(
    entries: readonly ReservedEntry[],
    deadlineMs: number,
    answered: (answer: ReserveAnswer) => void,
  ): void {
    assert(entries.length <= entriesMax, "a call is charged to a bounded number of accounts");
    this.#idCount += 1;
    const id = reservationId(this.holder, this.#idCount);
    this.#reservations.push({ id, entries, deadlineMs, answered, isAnswered: false });
    this.#scheduleTurn();
  }

  settle(settlement: Settlement, settled?: (result: SettleResult) => void): void {
    const { id, costs } = settlement;
    // The store would refuse the whole batch, and again with each repetition.
    assert(costs.length <= entriesMax && costs.every(isAmount), "costs are in range");
    const open = this.#open.get(id);
    if (open === undefined && holderOf(id) === this.holder) {
      // It was sent before, maybe with its entries. One without them could overtake it unnoticed.
      this.counts.unknownCount += 1;
      if (settled !== undefined) this.#options.clock.scheduleTurn(() => settled("unknown"));
      return;
    }
    if (open !== undefined) {
      this.#open.delete(id);
      this.#repeated.forget(id);
      const { entries, isLocal } = open;
      const nowUs = this.#options.clock.epochUs();
      this.#local.settle(entries, costs, { isLocal, nowUs });
    }
    const complete = open?.isLocal ? { id, costs, unreserved: open.entries } : settlement;
    this.#settlements.push({ settlement: complete, settled, sentMs: undefined });
    this.#scheduleTurn();
  }

  record(entry: UsageEntry): void {
    this.#lease.begin();
    this.#usage.add(entry);
  }

  /**
   * Settles and reports what it can within two seconds, and ends the lease: reservations that are
   * still open are released or charged. Never rejects.
   */
  async close(): Promise<void> {
    const { clock, store } = this.#options;
    this.#isClosed = true;
    this.#lease.stop();
    this.#early.sendAll();
    for (const settling of this.#settlements.splice(0)) this.#repeated.settle(settling);
    await this.#repeated.stop(clock.monotonicMs() + closeMsMax);
    await this.#usage.flush();
    await store.leave(this.holder, clock.monotonicMs() + settleTimeoutMs).catch(() => {
      // The lease expires by itself.
    });
  }

  #scheduleTurn(): void {
    this.#lease.begin();
    if (this.#isTurnScheduled) return;
    this.#isTurnScheduled = true;
    this.#options.clock.scheduleTurn(() => {
      this.#isTurnScheduled = false;
      this.#endTurn();
    });
  }

  #endTurn(): void {
    const settlements = this.#settlements;
    const reservations = this.#reservations;
    this.#settlements = [];
    this.#reservations = [];
    // Settlements come first, because they make room for reservations.
    const operations: Operation[] = [...settlements, ...this.#sendable(reservations)];
    for (let from = 0; from < operations.length; from += budgetOperationsMax) {
      this.#sendPart(operations.slice(from, from + budgetOperationsMax));
    }
  }

  /** Returns the reservations to send. Fails those that are too late already, or too many. */
  #sendable(reservations: readonly PendingReservation[]): readonly PendingReservation[] {
    const nowMs = this.#options.clock.monotonicMs();
    return reservations.filter((reservation, i) => {
      if (i < waitingReservationsMax && reservation.deadlineMs > nowMs) return true;
      this.#fail(reservation, "OVERLOADED", { isSent: false });
      return false;
    });
  }

  #sendPart(part: readonly Operation[]): void {
    const nowMs = this.#options.clock.monotonicMs();
    const isFull = this.#batchesInFlight >= budgetBatchesInFlightMax;
    // Settlements alone are not urgent, and do not probe a store that is unreachable.
    const isUrgent = !this.#breaker.isOpen || part.some(isReservation);
    if (!isFull && isUrgent && this.#breaker.admits(nowMs)) {
      void this.#sendTurn(part, nowMs);
      return;
    }
    const code = isFull ? "OVERLOADED" : "STORE_CIRCUIT_OPEN";
    for (const operation of part) {
      if (isReservation(operation)) this.#fail(operation, code, { isSent: false });
      else this.#repeated.settle(operation);
    }
  }

  async #sendTurn(part: readonly Operation[], nowMs: number): Promise<void> {
    const { reserveTimeoutMs = defaultReserveTimeoutMs } = this.#options;
    const reservations = part.filter(isReservation);
    const timeoutMs = reservations.length > 0 ? reserveTimeoutMs : settleTimeoutMs;
    for (const operation of part) if (!isReservation(operation)) operation.sentMs = nowMs;
    const disarm = this.#failEarlier(reservations, nowMs + timeoutMs);
    this.#batchesInFlight += 1;
    const outcomes = await this.#apply(part.map(operationOf), nowMs + timeoutMs);
    this.#batchesInFlight -= 1;
    disarm();
    for (const [i, operation] of part.entries()) {
      const outcome = outcomes.kind === "applied" ? outcomes.outcomes[i] : undefined;
      if (!isReservation(operation)) {
        if (outcome === undefined) this.#repeated.settle(operation);
        else this.#noteSettled(operation, outcome);
      } else if (outcome?.kind === "reserved") this.#noteReserved(operation, outcome);
      else {
        const code = outcomes.kind === "failed" ? outcomes.code : "STORE_FULL";
        this.#fail(operation, code, { isSent: true });
      }
    }
  }

  async #apply(operations: readonly BudgetOperation[], deadlineMs: number): Promise<AppliedBatch> {
    const { store, clock } = this.#options;
    this.counts.batchCount += 1;
    this.counts.operationCount += operations.length;
    const batch = { holder: this.holder, leaseMs: this.#leaseMs, operations };
    try {
      const outcomes = await store.apply(batch, deadlineMs);
      assert(outcomes.length === operations.length, "one outcome for each operation");
      this.#breaker.succeeded();
      this.#noteFound();
      return { kind: "applied", outcomes };
    } catch (thrown) {
      const { code } = toServiceError(thrown);
      this.#breaker.failed(clock.monotonicMs());
      if (this.#breaker.isOpen) this.#noteLost(code);
      return { kind: "failed", code };
    }
  }

  /** Fails the reservations whose callers wait for less time than the store may take. */
  #failEarlier(reservations: readonly PendingReservation[], storeDeadlineMs: number): Cancel {
    const { clock } = this.#options;
    const cancels = reservations
      .filter(({ deadlineMs }) => deadlineMs < storeDeadlineMs)
      .map((reservation) =>
        clock.schedule(reservation.deadlineMs - clock.monotonicMs(), () =>
          this.#fail(reservation, "STORE_TIMEOUT", { isSent: true }),
        ),
      );
    return () => {
      for (const cancel of cancels) cancel();
    };
  }

  #noteReserved(
    reservation: PendingReservation,
    { result }: Extract<BudgetOutcome, { kind: "reserved" }>,
  ): void {
    // Its caller has another answer already, which its settlement corrects.
    if (reservation.isAnswered) return;
    const { id, entries, answered } = reservation;
    reservation.isAnswered = true;
    this.#local.learn(entries, result);
    if (result.isReserved) {
      this.counts.reservedCount += 1;
      this.#noteOpen(id, { entries, isLocal: false });
    } else this.counts.refusedCount += 1;
    answered({ kind: "decided", id: result.isReserved ? id : undefined, result });
  }

  #fail(reservation: PendingReservation, code: ErrorCode, sent: { isSent: boolean }): void {
    if (reservation.isAnswered) return;
    reservation.isAnswered = true;
    const { id, entries, answered } = reservation;
    const result = this.#local.reserve(entries, this.#options.clock.epochUs());
    this.counts.failedCount += 1;
    if (result.isReserved) {
      this.counts.failureAdmittedCount += 1;
      this.#noteOpen(id, { entries, isLocal: true });
      this.#repeated.reserve(id, entries);
    } else {
      this.counts.failureRefusedCount += 1;
      if (sent.isSent) this.#release(id, entries);
    }
    answered({ kind: "failed", id: result.isReserved ? id : undefined, code, result });
  }

  #noteOpen(id: ReservationId, call: OpenCall): void {
    this.#open.set(id, call);
    if (this.#open.size <= openCallsMax) return;
    const [oldest] = this.#open.keys();
    if (oldest !== undefined) this.#open.delete(oldest);
  }

  #noteSettled(settling: Settling, outcome: BudgetOutcome): void {
    if (outcome.kind !== "settled") {
      this.#noteDropped(settling);
      return;
    }
    if (outcome.result === "unknown" && this.#isEarly(settling)) return;
    if (outcome.result === "settled") this.counts.settledCount += 1;
    else if (outcome.result === "late") this.counts.lateCount += 1;
    else this.counts.unknownCount += 1;
    settling.settled?.(outcome.result);
  }

  /** Reports whether it is sent again, because its call may not have been reserved yet. */
  #isEarly(settling: Settling): boolean {
    const isForeign = holderOf(settling.settlement.id) !== this.holder;
    return isForeign && !this.#isClosed && this.#early.add(settling);
  }

  #noteDropped({ settled }: Settling): void {
    this.counts.droppedCount += 1;
    if (!this.#isDropping) this.#options.onEvent?.({ kind: "settlementsDropped" });
    this.#isDropping = true;
    settled?.("unknown");
  }

  /** Releases a refused reservation, whatever the store did or will do with it. */
  #release(id: ReservationId, entries: readonly ReservedEntry[]): void {
    const settlement = { id, costs: entries.map(() => 0), unreserved: entries };
    this.#repeated.settle({ settlement, settled: undefined, sentMs: undefined });
  }

  #noteFound(): void {
    this.#isDropping = false;
    if (!this.#isLost) return;
    this.#isLost = false;
    this.#options.onEvent?.({ kind: "budgetStoreFound" });
    this.#repeated.wake();
  }

  #noteLost(code: ErrorCode): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#options.onEvent?.({ kind: "budgetStoreLost", code });
  }
}

function isAmount(cost: number): boolean {
  return Number.isInteger(cost) && cost >= 0 && cost <= amountMax;
}

function isReservation(operation: Operation): operation is PendingReservation {
  return "answered" in operation;
}

function operationOf(operation: Operation): BudgetOperation {
  if (!isReservation(operation)) return settleOperation(operation);
  const { id, entries } = operation;
  return { kind: "reserve", id, entries };
}
