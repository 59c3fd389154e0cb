import { assert } from "../../core/base/errors.js";
import {
  type AccountKey,
  type AccountLaw,
  type AccountState,
  amountMax,
  entriesMax,
  type ReservedEntry,
  type ReserveResult,
  type SettleResult,
} from "../../core/budgets/account.js";
import { accountKeyLengthMax, isAccountKey } from "../../core/budgets/account-key.js";
import { retryUsMax } from "../../core/budgets/account-law.js";
import type { ReservationId, Settlement } from "../../core/budgets/budget-ledger.js";
import { isHolder, isOf } from "../../core/budgets/reservation-id.js";
import type { UsageCount } from "../../core/budgets/usage.js";

/** One operation of a batch. */
export type BudgetOperation =
  | {
      readonly kind: "reserve";
      readonly id: ReservationId;
      readonly entries: readonly ReservedEntry[];
    }
  | ({ readonly kind: "settle" } & Settlement);

/** What came of one operation, in the order of the batch. */
export type BudgetOutcome =
  | { readonly kind: "reserved"; readonly result: ReserveResult }
  | { readonly kind: "settled"; readonly result: SettleResult }
  /** Nothing of this operation happened: `STORE_FULL` for a new account beyond `accountsMax`. */
  | { readonly kind: "failed"; readonly code: "STORE_FULL" };

/** One call to the store by a replica. */
export interface BudgetBatch {
  /** The replica whose lease the new reservations are under: what an id begins with. */
  readonly holder: string;
  /** How long the holder's reservations stay without another batch or `renew`. */
  readonly leaseMs: number;
  /** At most `budgetOperationsMax`. */
  readonly operations: readonly BudgetOperation[];
}

/** An account as operators see it. */
export interface AccountRow extends AccountState {
  readonly account: AccountKey;
  /** Spent in the window before. */
  readonly spentBefore: number;
  /** Estimates that lost holders left, and that were released, in the current window. */
  readonly lost: number;
}

/** One row of a usage report: sums of a day, for an account and a model. */
export interface UsageRow {
  readonly service: string;
  /** An account's key; empty: no budget counted the calls. */
  readonly account: string;
  readonly model: string;
  readonly callCount: number;
  readonly counts: Readonly<Partial<Record<UsageCount, number>>>;
  /** Fractions of the currency. */
  readonly cost: number;
}

/** What a holder adds to the usage report of a day. */
export interface UsageReport {
  readonly holder: string;
  /** Grows with each report of a holder, over all days. */
  readonly number: number;
  /** Such as 2026-11-27, in UTC. */
  readonly day: string;
  /** At most `reportRowsMax`. */
  readonly rows: readonly UsageRow[];
}

/** An operator's refund. */
export interface Refund {
  /** 1 to 64 characters of `[0-9A-Za-z._-]`; known for `refundKeptMs`. */
  readonly id: string;
  readonly account: AccountKey;
  readonly law: AccountLaw;
  readonly amount: number;
}

/** The most operations of one batch. */
export const budgetOperationsMax = 128;

/** The most accounts of one budget. A new one beyond them fails as STORE_FULL. */
export const accountsMax = 100_000;

/** How long a settlement may come after its holder's lease has expired, in milliseconds. */
export const lateSettlementMsMax = 3_600_000;

/** The most reservations of one lost holder that late settlements are still charged for. */
export const lateRecordsMax = 10_000;

/** Reservations of lost holders that one call expires at most. */
export const expiredMax = 64;

/** The longest lease, in milliseconds. */
export const leaseMsMax = 600_000;

/** How long the id of a refund is known, in milliseconds: a day. */
export const refundKeptMs = 86_400_000;

/** The most rows of one report of usage. */
export const reportRowsMax = 512;

/** The rows of one page of a list or of a usage report, at most. */
export const pageRowsMax = 256;

/** How long a day's usage report is kept, in milliseconds: 400 days. */
export const usageKeptMs = 400 * 86_400_000;

/** The most rows of a day's usage report; the rest is summed in a row without an account. */
export const usageRowsMax = 50_000;

/**
 * The exact ledger of budgets. Methods throw ServiceError with STORE_ codes.
 *
 * What holds, whatever order batches of replicas arrive in:
 * - a reservation is made at all of its accounts or at none, and refused if an enforced one would
 *   exceed its capacity;
 * - each id is reserved at most once and settled at most once: all operations may be repeated, for
 *   two hours at least. A reservation that arrives after its settlement is not made; one that was
 *   refused is decided anew;
 * - what a holder has reserved is released (or charged) when its lease has expired; a settlement
 *   within `lateSettlementMsMax` after it is charged once, as the correction of that;
 * - so the cost of calls admitted in a window exceeds the capacity by at most the sum of what calls
 *   cost beyond their estimates.
 */
export interface BudgetStore {
  /** Applies operations in order. May be repeated with the same ids. */
  apply(batch: BudgetBatch, deadlineMs: number): Promise<readonly BudgetOutcome[]>;
  /** Renews a holder's lease, and expires a bounded number of reservations of dead holders. */
  renew(
    holder: string,
    leaseMs: number,
    deadlineMs: number,
  ): Promise<{ readonly expiredCount: number }>;
  /** The holder has settled everything that it will; its lease ends at once. */
  leave(holder: string, deadlineMs: number): Promise<void>;
  /** Reads accounts as they are; undefined where there is none. */
  read(
    accounts: readonly { readonly account: AccountKey; readonly law: AccountLaw }[],
    deadlineMs: number,
  ): Promise<readonly (AccountRow | undefined)[]>;
  /**
   * A page of a budget's accounts in no order.
   *
   * @param cursor empty for the first page; the answer's is empty at the end
   */
  list(
    query: { readonly budget: string; readonly law: AccountLaw; readonly cursor: string },
    deadlineMs: number,
  ): Promise<{ readonly rows: readonly AccountRow[]; readonly cursor: string }>;
  /**
   * Gives back what was spent, at most what is. Answers what was given back. Repeats of one id give
   * back once, and answer the same.
   */
  refund(refund: Refund, deadlineMs: number): Promise<number>;
  /**
   * Adds to a day's usage report, once for each `number` of a holder. A report is repeated with its
   * number until it is answered, and before the next one.
   */
  addUsage(report: UsageReport, deadlineMs: number): Promise<void>;
  /** A page of a day's usage report. @param cursor as in `list` */
  usage(
    query: { readonly day: string; readonly cursor: string },
    deadlineMs: number,
  ): Promise<{ readonly rows: readonly UsageRow[]; readonly cursor: string }>;
}

/**
 * Fails for a batch that no ledger may send. The texts of ids and keys are not looked at again: who
 * makes or reads one does that.
 */
export function assertBudgetBatch({ holder, leaseMs, operations }: BudgetBatch): void {
  assertLease(holder, leaseMs);
  assert(operations.length <= budgetOperationsMax, "a batch of budgets is bounded");
  for (const operation of operations) {
    if (operation.kind === "reserve") {
      assert(isOf(holder, operation.id), "a holder reserves for itself");
      assertEntries(operation.entries);
    } else {
      const { costs, unreserved } = operation;
      assert(costs.length <= entriesMax && costs.every(isAmount), "costs are in range");
      if (unreserved !== undefined) assertEntries(unreserved);
    }
  }
}

/** Fails for a lease that no ledger may have. */
export function assertLease(holder: string, leaseMs: number): void {
  assert(isHolder(holder), "a holder's name can be part of an id");
  assert(leaseMs > 0 && leaseMs <= leaseMsMax, "a lease is bounded");
}

/** Fails for a refund that nobody may make. */
export function assertRefund({ id, account, amount }: Refund): void {
  assert(/^[0-9A-Za-z._-]{1,64}$/.test(id), "a refund has an id");
  assert(isAccountKey(account) && isAmount(amount), "a refund is in range");
}

/** Fails for a report that no ledger may send. */
export function assertUsage({ holder, number, day, rows }: UsageReport): void {
  assertLease(holder, leaseMsMax);
  assert(/^\d{4}-\d\d-\d\d$/.test(day) && rows.length <= reportRowsMax, "a report is bounded");
  assert(Number.isSafeInteger(number) && number >= 0, "a report has a number");
  for (const row of rows) {
    const { service, account, model, callCount, counts, cost } = row;
    const length = service.length + account.length + model.length;
    assert(length <= usageNamesMax, "the names of a row are bounded");
    const numbers = [callCount, cost, ...Object.values(counts)];
    assert(numbers.every(isCount), "sums of a row are in range");
  }
}

function assertEntries(entries: readonly ReservedEntry[]): void {
  assert(entries.length <= entriesMax, "the accounts of a call are bounded");
  const areSound = entries.every(({ account, law, capacity, estimate }) => {
    const isTimed = law.kind !== "drain" || (isCount(law.periodUs) && law.periodUs <= retryUsMax);
    const isBounded = account.length <= accountKeyLengthMax;
    return isBounded && isTimed && isAmount(capacity) && isAmount(estimate);
  });
  assert(areSound, "the entries of a call are in range");
  if (entries.length < 2) return;
  const names = new Set(entries.map(({ account }) => account));
  assert(names.size === entries.length, "a call has each account once");
}

function isAmount(amount: number): boolean {
  return isCount(amount) && amount <= amountMax;
}

function isCount(count: number): boolean {
  return Number.isSafeInteger(count) && count >= 0;
}

/** The longest names of a row of usage together, in UTF-16 units. */
const usageNamesMax = 4_096;
