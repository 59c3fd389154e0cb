import type { Windows } from "../limits/window.js";

/**
 * Names one account in the store: one budget, and one value for each part of its `per`. Bounded and
 * free of control characters; see `accountKey`.
 */
export type AccountKey = string & { readonly accountKeyBrand: never };

/**
 * How an account forgets what was spent. Amounts are integers in the budget's own unit (tokens,
 * milliseconds, fractions of a currency), 0 to `amountMax`.
 */
export type AccountLaw =
  /**
   * At most the amount in each calendar window. A call belongs to the window in which it was
   * reserved, also if it is settled later.
   */
  | { readonly kind: "window"; readonly windows: Windows }
  /**
   * The amount drains continuously in `periodUs`. What is reserved does not drain; what is spent
   * drains from its settlement on.
   */
  | { readonly kind: "drain"; readonly periodUs: number }
  /** Only what is reserved counts: calls in flight. Settlement spends nothing. */
  | { readonly kind: "inFlight" };

/** The largest amount of a budget or of one call: 2^52, so that sums of two are exact doubles. */
export const amountMax = 4_503_599_627_370_496;

/** One account that a call is charged to. */
export interface ReservedEntry {
  readonly account: AccountKey;
  readonly law: AccountLaw;
  /** What may be spent: the policy's amount with all top-ups, 0 to `amountMax`. */
  readonly capacity: number;
  /** What the call is estimated to cost, 0 to `amountMax`. */
  readonly estimate: number;
  /**
   * Whether a call that does not fit is refused. False for budgets that only annotate, fall back or
   * observe: the call is reserved nevertheless.
   */
  readonly isEnforced: boolean;
  /** What its lost reservation becomes when its holder's lease expires. */
  readonly whenLost: "release" | "charge";
  /**
   * What decides while the store does not: this replica, with the rest that it knows of divided by
   * the replicas (`local`), or everybody passes (`allow`) or, if the entry is enforced, nobody.
   */
  readonly onStoreFailure: "allow" | "deny" | "local";
}

/** What is known of an account at a time. */
export interface AccountState {
  /** Spent in the current window, or what has not drained yet. */
  readonly spent: number;
  /** Estimates of calls in flight that were reserved in the current window. */
  readonly reserved: number;
}

/** What a reservation found at one account, before it was made. */
export interface EntryResult extends AccountState {
  /** Whether the estimate did not fit: `spent + reserved + estimate > capacity`. */
  readonly isOver: boolean;
  /**
   * If over: microseconds until it can fit by time alone (the end of the window, or by draining);
   * undefined where only other calls' ends can help.
   */
  readonly retryUs?: number;
}

/** One call's reservation over all of its accounts: all, or none. */
export interface ReserveResult {
  /** False if an enforced entry is over: then nothing was reserved. */
  readonly isReserved: boolean;
  /** In the order of the entries. */
  readonly entries: readonly EntryResult[];
  /** The store's time, in microseconds since 1970. */
  readonly nowUs: number;
}

/**
 * What came of a settlement. `settled`: the reservation was open. `late`: its lease had expired,
 * and the cost was charged now. `unknown`: it was settled before, or forgotten, and nothing was
 * charged.
 */
export type SettleResult = "settled" | "late" | "unknown";

/** The most accounts that one call is charged to. */
export const entriesMax = 16;
