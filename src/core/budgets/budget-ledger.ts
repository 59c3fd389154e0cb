import type { ErrorCode } from "../base/errors.js";
import type { ReservedEntry, ReserveResult, SettleResult } from "./account.js";
import type { Usage } from "./usage.js";

/** Identifies one reservation in the fleet: 1 to 64 characters of `[0-9A-Za-z._-]`. */
export type ReservationId = string & { readonly reservationIdBrand: never };

/** The ledger's response to a reservation. */
export type ReserveAnswer =
  /** @property id undefined if an enforced entry is over, so that nothing is reserved */
  | {
      readonly kind: "decided";
      readonly id: ReservationId | undefined;
      readonly result: ReserveResult;
    }
  /**
   * The store did not decide in time, so the entries' `onStoreFailure` did.
   *
   * @property id of an admitted call. It must be settled like any other, and is charged once when
   * the store is back. Undefined if refused: what the store may have reserved is released.
   * @property result as this replica knows it. `onStoreFailure` determines which entries are over
   */
  | {
      readonly kind: "failed";
      readonly id: ReservationId | undefined;
      readonly code: ErrorCode;
      readonly result: ReserveResult;
    };

/** The costs that a settlement charges, in the order of the reservation's entries. */
export interface Settlement {
  readonly id: ReservationId;
  /** The actual cost for each entry, in the unit of its budget. */
  readonly costs: readonly number[];
  /**
   * The entries, for a call that may have been admitted without a reservation. If the store has no
   * reservation, they are charged, and none can be made with this id later. The ledger adds them,
   * so callers leave them out.
   */
  readonly unreserved?: readonly ReservedEntry[];
}

/** One ended call in the usage report. Summed by replica, and written every few seconds. */
export interface UsageEntry {
  readonly service: string;
  /** Keys of the accounts that it is charged to, each with its own row. At most `entriesMax`. */
  readonly accounts: readonly string[];
  readonly model: string;
  readonly usage: Usage;
  /** The cost in fractions of the currency. Undefined without prices. */
  readonly cost: number | undefined;
}

/**
 * The replica's side of the ledger. Batches calls into one script per turn of the event loop, keeps
 * the lease of this replica's reservations, and repeats settlements until the store has them.
 */
export interface BudgetLedger {
  /**
   * Reserves all entries, or none.
   *
   * @param deadlineMs monotonic time after which the result is `failed`
   * @param answered called exactly once, never before this returns
   */
  reserve(
    entries: readonly ReservedEntry[],
    deadlineMs: number,
    answered: (answer: ReserveAnswer) => void,
  ): void;
  /**
   * Settles exactly once, regardless of which replica calls it and how often. During an outage of
   * the store, settlements wait in memory. Beyond a bound, the oldest are dropped and counted.
   *
   * @param settled receives the result. Optional
   */
  settle(settlement: Settlement, settled?: (result: SettleResult) => void): void;
  /** Adds to the usage report. */
  record(entry: UsageEntry): void;
}
