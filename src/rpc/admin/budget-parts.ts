import type { JsonObject } from "../../core/base/json.js";
import type { TopUp } from "../../core/budgets/top-up.js";
import type { UsageCount } from "../../core/budgets/usage.js";
import type { Window } from "../../core/limits/window.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import type { ChangeOutcome } from "../../store/coordination/record-store.js";

/** Dependencies of BudgetService: plain data in, plain data out. */

/** An account of a budget in the ledger. Amounts are in the budget's unit. */
export interface AccountView {
  /** One for each part of the budget's `per`. */
  readonly values: readonly string[];
  /** Maximum that may be spent, including top-ups. */
  readonly capacity: number;
  readonly toppedUp: number;
  readonly spent: number;
  readonly reserved: number;
  readonly spentBefore: number;
  readonly lost: number;
}

/** A top-up by an operator, and the version of its record. */
export interface TopUpView {
  readonly topUp: TopUp;
  readonly version: number;
}

/** A row of a day's usage report. */
export interface UsageView {
  readonly service: string;
  readonly model: string;
  readonly callCount: number;
  readonly counts: Readonly<Partial<Record<UsageCount, number>>>;
  /** Fractions of the currency. */
  readonly cost: number;
  /** Undefined: no budget counted the calls, or the row is the rest of the day. */
  readonly account: { readonly budget: string; readonly values: readonly string[] } | undefined;
  /** Whether it sums the usage beyond the bound of the report. */
  readonly isRest: boolean;
}

/** Budgets, as operators see and change them. Methods throw ServiceError with STORE_ codes. */
export interface BudgetAdministration {
  /** Returns the current window of a budget. Undefined: it drains. */
  window(budget: BudgetPolicy): Window | undefined;
  /** Returns an account. One that no call has used yet has spent nothing. */
  account(budget: BudgetPolicy, values: readonly string[]): Promise<AccountView>;
  /** Returns a page of accounts, unordered. @param cursor empty for the first page */
  accounts(budget: BudgetPolicy, cursor: string): Promise<Page<AccountView>>;
  /** Refunds an amount, once per id. Returns how much: at most what was spent. */
  refund(
    budget: BudgetPolicy,
    refund: { readonly values: readonly string[]; readonly id: string; readonly amount: number },
  ): Promise<number>;
  /** Returns a page of a day's usage report, such as 2026-11-27. @param cursor as in `accounts` */
  usage(day: string, cursor: string): Promise<Page<UsageView>>;
  /** Returns the top-ups that have not expired, unordered. */
  topUps(): Iterable<TopUpView>;
  /** Writes a top-up with its audit entry, both or neither; undefined removes it. */
  changeTopUp(
    id: string,
    topUp: TopUp | undefined,
    change: { readonly expectedVersion: number; readonly audit: JsonObject },
  ): Promise<ChangeOutcome>;
}

/** A part of a list. */
interface Page<T> {
  readonly rows: readonly T[];
  /** Empty at the end. */
  readonly cursor: string;
}

/**
 * Returns the domain whose readers may see a budget. Undefined: its services have several domains,
 * or none.
 */
export function domainOfBudget(
  parts: { readonly policies: Pick<PolicySource, "current"> },
  { services }: BudgetPolicy,
): string | undefined {
  const all = parts.policies.current()?.services ?? [];
  const own = all.filter(({ name, usage }) => services?.includes(name) ?? usage !== undefined);
  const domains = new Set(own.map(({ rateLimit }) => rateLimit?.domain));
  return domains.size === 1 ? [...domains][0] : undefined;
}
