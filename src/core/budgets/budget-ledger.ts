import type { ErrorCode } from "../base/errors.js";
import type { ReservedEntry, ReserveResult, SettleResult } from "./account.js";
import type { Usage } from "./usage.js";

/** Names one reservation in the fleet: 1 to 64 characters of `[0-9A-Za-z._-]`. */
export type ReservationId = string & { readonly reservationIdBrand: never };

/** What the ledger answers to a reservation. */
export type ReserveAnswer =
  /** @property id undefined where an enforced entry is over, so nothing is reserved */
  | {
      readonly kind: "decided";
      readonly id: ReservationId | undefined;
      readonly result: ReserveResult;
    }
  /**
   * The store could not decide in time, so `onStoreFailure` of the entries did.
   *
   * @property id of a call that they let in: to be settled as any other, and charged once when the
   * store is back. Undefined where they refuse it: what the store may have reserved is released.
   * @property result as this replica knows it: an entry is over where its `onStoreFailure` says so
   */
  | {
      readonly kind: "failed";
      readonly id: ReservationId | undefined;
      readonly code: ErrorCode;
      readonly result: ReserveResult;
    };

/** What a settlement charges, entry by entry in the order of the reservation. */
export interface Settlement {
  readonly id: ReservationId;
  /** The true cost for each entry, in the units of its budget. */
  readonly costs: readonly number[];
  /**
   * The entries, for a call that may have been let in without a reservation: charged where the
   * store has none, and none can be made under this id later. The ledger adds them; absent in what
   * it is given.
   */
  readonly unreserved?: readonly ReservedEntry[];
}

/** What the usage report has of one ended call. Summed by replica, written every few seconds. */
export interface UsageEntry {
  readonly service: string;
  /** Keys of accounts that it is charged to, each with a row of its own; at most `entriesMax`. */
  readonly accounts: readonly string[];
  readonly model: string;
  readonly usage: Usage;
  /** The cost in fractions of the currency; undefined without prices. */
  readonly cost: number | undefined;
}

/**
 * The replica's side of the ledger: batches calls into one script a turn, keeps the lease of this
 * replica's reservations, and repeats settlements until the store has them.
 */
export interface BudgetLedger {
  /**
   * Reserves all entries, or none.
   *
   * @param deadlineMs monotonic time after which the answer is `failed`
   * @param answered called exactly once, never before this returns
   */
  reserve(
    entries: readonly ReservedEntry[],
    deadlineMs: number,
    answered: (answer: ReserveAnswer) => void,
  ): void;
  /**
   * Settles exactly once, whichever replica asks, and however often. Survives outages of the store
   * in memory, within a bound; the oldest are dropped and counted beyond it.
   *
   * @param settled told what came of it; absent: nobody needs to know
   */
  settle(settlement: Settlement, settled?: (result: SettleResult) => void): void;
  /** Adds to the usage report. */
  record(entry: UsageEntry): void;
}
