import type { Windows } from "../limits/window.js";

/**
 * Identifies an account in the store: one budget, and one value for each part of its `per`. Bounded
 * and without control characters. See `accountKey`.
 */
export type AccountKey = string & { readonly accountKeyBrand: never };

/**
 * The law by which an account forgets what was spent. Amounts are integers in the budget's own unit
 * (tokens, milliseconds, fractions of a currency), 0 to `amountMax`.
 */
export type AccountLaw =
  /**
   * At most the amount in each calendar window. A call belongs to the window in which it was
   * reserved, even if it is settled later.
   */
  | { readonly kind: "window"; readonly windows: Windows }
  /**
   * The amount drains continuously in `periodUs`. Reserved amounts do not drain, and spent amounts
   * drain from their settlement on.
   */
  | { readonly kind: "drain"; readonly periodUs: number }
  /** Only reserved amounts count: calls in flight. Settlement spends nothing. */
  | { readonly kind: "inFlight" };

/** The largest amount of a budget or of one call: 2^52, so that sums of two are exact doubles. */
export const amountMax = 4_503_599_627_370_496;

/** One account that a call is charged to. */
export interface ReservedEntry {
  readonly account: AccountKey;
  readonly law: AccountLaw;
  /** The amount that may be spent: the policy's amount with all top-ups, 0 to `amountMax`. */
  readonly capacity: number;
  /** The estimated cost of the call, 0 to `amountMax`. */
  readonly estimate: number;
  /**
   * Whether a call that does not fit is refused. False for budgets that only annotate, fall back or
   * observe: the call is reserved anyway.
   */
  readonly isEnforced: boolean;
  /** What happens to its reservation if the holder's lease expires. */
  readonly whenLost: "release" | "charge";
  /**
   * The decision while the store is unavailable. `local`: this replica decides, using the rest that
   * it knows of divided by the replicas. `allow`: all calls pass. `deny`: if enforced, none pass.
   */
  readonly onStoreFailure: "allow" | "deny" | "local";
}

/** The state of an account at a point in time. */
export interface AccountState {
  /** Spent in the current window, or what has not drained yet. */
  readonly spent: number;
  /** Estimates of calls in flight that were reserved in the current window. */
  readonly reserved: number;
}

/** The state that a reservation found at one account, before it was made. */
export interface EntryResult extends AccountState {
  /** Whether the estimate did not fit: `spent + reserved + estimate > capacity`. */
  readonly isOver: boolean;
  /**
   * If over: microseconds until it can fit by time alone (the end of the window, or draining).
   * Undefined if time alone does not help, but for example the end of other calls.
   */
  readonly retryUs?: number;
}

/** The result of reserving all accounts of one call, or none. */
export interface ReserveResult {
  /** False if an enforced entry is over. In that case, nothing was reserved. */
  readonly isReserved: boolean;
  /** In the order of the entries. */
  readonly entries: readonly EntryResult[];
  /** The store's time, in microseconds since 1970. */
  readonly nowUs: number;
}

/**
 * The result of a settlement. `settled`: the reservation was open. `late`: its lease had expired,
 * and the cost was charged now. `unknown`: it had been settled or forgotten, and nothing was
 * charged.
 */
export type SettleResult = "settled" | "late" | "unknown";

/** Maximum number of accounts that one call is charged to. */
export const entriesMax = 16;
