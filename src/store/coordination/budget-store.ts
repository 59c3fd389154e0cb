import type {
  AccountKey,
  AccountLaw,
  AccountState,
  ReservedEntry,
  ReserveResult,
  SettleResult,
} from "../../core/budgets/account.js";
import type { ReservationId, Settlement } from "../../core/budgets/budget-ledger.js";
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
  /** As `UsageEntry.accounts` has it. */
  readonly account: string;
  readonly model: string;
  readonly callCount: number;
  readonly counts: Readonly<Partial<Record<UsageCount, number>>>;
  /** Fractions of the currency. */
  readonly cost: number;
}

/** The most operations of one batch. */
export const budgetOperationsMax = 128;

/** The most accounts of one budget. A new one beyond them fails as STORE_FULL. */
export const accountsMax = 100_000;

/** How long a settlement may come after its holder's lease has expired, in milliseconds. */
export const lateSettlementMsMax = 3_600_000;

/** The most rows of a day's usage report; the rest is summed in a row without an account. */
export const usageRowsMax = 50_000;

/**
 * The exact ledger of budgets. Methods throw ServiceError with STORE_ codes.
 *
 * What holds, whatever order batches of replicas arrive in:
 * - a reservation is made at all of its accounts or at none, and refused if an enforced one would
 *   exceed its capacity;
 * - each id is reserved at most once and settled at most once: all operations may be repeated, and
 *   a reservation that arrives after its settlement with `unreserved` is not made;
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
   * Gives back what was spent, at most what is: an operator's refund. Answers what was given back.
   *
   * @param id repeats of one id give back once
   */
  refund(
    refund: {
      readonly id: string;
      readonly account: AccountKey;
      readonly law: AccountLaw;
      readonly amount: number;
    },
    deadlineMs: number,
  ): Promise<number>;
  /**
   * Adds to a day's usage report, once for each `number` of a holder.
   *
   * @param day such as 2026-11-27, in UTC
   */
  addUsage(
    report: {
      readonly holder: string;
      /** Grows with each report of a holder. */
      readonly number: number;
      readonly day: string;
      readonly rows: readonly UsageRow[];
    },
    deadlineMs: number,
  ): Promise<void>;
  /** A page of a day's usage report. @param cursor as in `list` */
  usage(
    query: { readonly day: string; readonly cursor: string },
    deadlineMs: number,
  ): Promise<{ readonly rows: readonly UsageRow[]; readonly cursor: string }>;
}
