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

/** The result of one operation, in the order of the batch. */
export type BudgetOutcome =
  | { readonly kind: "reserved"; readonly result: ReserveResult }
  | { readonly kind: "settled"; readonly result: SettleResult }
  /** The operation had no effect. `STORE_FULL`: it needs a new account beyond `accountsMax`. */
  | { readonly kind: "failed"; readonly code: "STORE_FULL" };

/** One call to the store by a replica. */
export interface BudgetBatch {
  /** The replica whose lease covers the new reservations. Their ids begin with it. */
  readonly holder: string;
  /** How long the holder's reservations are kept without another batch or `renew`. */
  readonly leaseMs: number;
  /** At most `budgetOperationsMax`. */
  readonly operations: readonly BudgetOperation[];
}

/** An account as operators see it. */
export interface AccountRow extends AccountState {
  readonly account: AccountKey;
  /** Amount spent in the previous window. */
  readonly spentBefore: number;
  /** Estimates of lost holders that were released in the current window. */
  readonly lost: number;
}

/** One row of a usage report: a day's sums for a service, an account and a model. */
export interface UsageRow {
  readonly service: string;
  /** Key of the account. Empty: no budget counted the calls. */
  readonly account: string;
  readonly model: string;
  readonly callCount: number;
  readonly counts: Readonly<Partial<Record<UsageCount, number>>>;
  /** In fractions of the currency. */
  readonly cost: number;
}

/** What a holder adds to the usage report of a day. */
export interface UsageReport {
  readonly holder: string;
  /** Increases with each report of a holder, across all days. */
  readonly number: number;
  /** Day in UTC, such as 2026-11-27. */
  readonly day: string;
  /** At most `reportRowsMax`. */
  readonly rows: readonly UsageRow[];
}

/** An operator's refund. */
export interface Refund {
  /** 1 to 64 characters of `[0-9A-Za-z._-]`. Remembered for `refundKeptMs`. */
  readonly id: string;
  readonly account: AccountKey;
  readonly law: AccountLaw;
  readonly amount: number;
}

/** Maximum number of operations in one batch. */
export const budgetOperationsMax = 128;

/** Maximum number of accounts of one budget. A new one beyond it fails with STORE_FULL. */
export const accountsMax = 100_000;

/** How late a settlement may arrive after its holder's lease has expired, in milliseconds. */
export const lateSettlementMsMax = 3_600_000;

/** Maximum number of reservations of one lost holder for which late settlements are charged. */
export const lateRecordsMax = 10_000;

/** Maximum number of reservations of lost holders that one call expires. */
export const expiredMax = 64;

/** Maximum duration of a lease, in milliseconds. */
export const leaseMsMax = 600_000;

/** How long the id of a refund is remembered, in milliseconds: a day. */
export const refundKeptMs = 86_400_000;

/** Maximum number of rows in one usage report. */
export const reportRowsMax = 512;

/** Maximum number of rows in one page of a list or of a usage report. */
export const pageRowsMax = 256;

/** How long a day's usage report is kept, in milliseconds: 400 days. */
export const usageKeptMs = 400 * 86_400_000;

/** Maximum rows of a day's usage report. The rest is summed in rows without account and model. */
export const usageRowsMax = 50_000;

/**
 * The exact ledger of budgets. Methods throw ServiceError with STORE_ codes.
 *
 * Guarantees, in whatever order the batches of replicas arrive:
 * - A reservation is made at all of its accounts or at none. It is refused if it would exceed the
 *   capacity of an enforced account.
 * - Each id is reserved at most once and settled at most once, so all operations may be repeated
 *   for at least two hours. A reservation that arrives after its settlement is not made. A repeated
 *   reservation that was refused is decided again.
 * - A holder's reservations are released (or charged) once its lease has expired. A settlement at
 *   most `lateSettlementMsMax` after that is charged once and corrects it.
 * - So the cost of calls admitted in a window exceeds the capacity by at most the sum of what calls
 *   cost beyond their estimates.
 */
export interface BudgetStore {
  /** Applies operations in order. May be repeated with the same ids. */
  apply(batch: BudgetBatch, deadlineMs: number): Promise<readonly BudgetOutcome[]>;
  /** Renews a holder's lease and expires a bounded number of reservations of lost holders. */
  renew(
    holder: string,
    leaseMs: number,
    deadlineMs: number,
  ): Promise<{ readonly expiredCount: number }>;
  /** Ends a holder's lease at once. The holder will not settle anything more. */
  leave(holder: string, deadlineMs: number): Promise<void>;
  /** Reads accounts without changing them; undefined for each that does not exist. */
  read(
    accounts: readonly { readonly account: AccountKey; readonly law: AccountLaw }[],
    deadlineMs: number,
  ): Promise<readonly (AccountRow | undefined)[]>;
  /**
   * Reads a page of a budget's accounts, in no particular order.
   *
   * @param cursor empty for the first page; the returned one is empty at the end
   */
  list(
    query: { readonly budget: string; readonly law: AccountLaw; readonly cursor: string },
    deadlineMs: number,
  ): Promise<{ readonly rows: readonly AccountRow[]; readonly cursor: string }>;
  /**
   * Refunds an amount, at most what the account has spent. Returns the amount refunded. Repeated
   * calls with one id refund once and return the same amount.
   */
  refund(refund: Refund, deadlineMs: number): Promise<number>;
  /**
   * Adds to a day's usage report, once for each `number` of a holder. The holder repeats a report
   * with the same number until it is answered, and only then sends the next one.
   */
  addUsage(report: UsageReport, deadlineMs: number): Promise<void>;
  /** Reads a page of a day's usage report. @param cursor as in `list` */
  usage(
    query: { readonly day: string; readonly cursor: string },
    deadlineMs: number,
  ): Promise<{ readonly rows: readonly UsageRow[]; readonly cursor: string }>;
}

/**
 * Asserts that a batch is within the bounds. Does not check the texts of ids and keys again: the
 * code that creates or reads them does.
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

/** Asserts that a lease is within the bounds. */
export function assertLease(holder: string, leaseMs: number): void {
  assert(isHolder(holder), "a holder's name can be part of an id");
  assert(leaseMs > 0 && leaseMs <= leaseMsMax, "a lease is bounded");
}

/** Asserts that a refund is within the bounds. */
export function assertRefund({ id, account, amount }: Refund): void {
  assert(/^[0-9A-Za-z._-]{1,64}$/.test(id), "a refund has an id");
  assert(isAccountKey(account) && isAmount(amount), "a refund is in range");
}

/** Asserts that a usage report is within the bounds. */
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

/** Maximum total length of the names in a usage row, in UTF-16 code units. */
const usageNamesMax = 4_096;
