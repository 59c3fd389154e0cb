import type { JsonObject } from "../../core/base/json.js";
import type { TopUp } from "../../core/budgets/top-up.js";
import type { UsageCount } from "../../core/budgets/usage.js";
import type { Window } from "../../core/limits/window.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import type { ChangeOutcome } from "../../store/coordination/record-store.js";

/** What BudgetService is made of: plain data in, plain data out. */

/** An account of a budget as the ledger has it. Amounts are in the budget's unit. */
export interface AccountView {
  /** One for each part of the budget's `per`. */
  readonly values: readonly string[];
  /** What may be spent, with top-ups. */
  readonly capacity: number;
  readonly toppedUp: number;
  readonly spent: number;
  readonly reserved: number;
  readonly spentBefore: number;
  readonly lost: number;
}

/** What an operator has added to budgets, and the version of its record. */
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
  /** Whether it sums what was beyond the bound of the report. */
  readonly isRest: boolean;
}

/** Budgets, as operators see and change them. Methods throw ServiceError with STORE_ codes. */
export interface BudgetAdministration {
  /** The current window of a budget; undefined: it drains. */
  window(budget: BudgetPolicy): Window | undefined;
  /** An account; one that no call has used yet has spent nothing. */
  account(budget: BudgetPolicy, values: readonly string[]): Promise<AccountView>;
  /** A page of accounts in no order. @param cursor empty for the first page, and at the end */
  accounts(budget: BudgetPolicy, cursor: string): Promise<Page<AccountView>>;
  /** Gives back, once for an id. Answers how much: at most what was spent. */
  refund(
    budget: BudgetPolicy,
    refund: { readonly values: readonly string[]; readonly id: string; readonly amount: number },
  ): Promise<number>;
  /** A page of the usage report of a day, such as 2026-11-27. @param cursor as in `accounts` */
  usage(day: string, cursor: string): Promise<Page<UsageView>>;
  /** Those that have not expired, in no order. */
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
 * The domain whose readers may see a budget; undefined: the domains of its services are several, or
 * there is none.
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
