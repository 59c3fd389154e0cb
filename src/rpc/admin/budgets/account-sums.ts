import { projectWindow } from "../../../core/budgets/projection.js";
import type { Window } from "../../../core/limits/window.js";
import type { BudgetPolicy } from "../../../policy/budgets/budget-policy.js";
import type { AccountView, BudgetAdministration } from "../budget-parts.js";

/** Returns the part of its capacity that an account uses. 0 without a capacity. */
export function usedRatioOf({ spent, reserved, capacity }: AccountView): number {
  return capacity === 0 ? 0 : (spent + reserved) / capacity;
}

/** Sums over the accounts of a budget. */
export interface AccountSums {
  accountCount: number;
  spent: bigint;
  reserved: bigint;
  spentBefore: bigint;
  lost: bigint;
  capacity: bigint;
  warnedCount: number;
  overCount: number;
  projectedOverCount: number;
  usedRatioMax: number;
  /** Undefined if the budget drains. */
  projected: bigint | undefined;
}

/** How long sums are cached, in milliseconds: reading them reads all accounts. */
const sumsKeptMs = 5_000;

interface KeptSums {
  readonly readMs: number;
  readonly version: string;
  readonly sums: Promise<AccountSums>;
}

/** Sums of budgets, each read once for all requests within some seconds. */
export class BudgetSums {
  readonly #kept = new Map<string, KeptSums>();

  /** @param at the time in milliseconds, and the version of the budget's policy */
  async of(
    budgets: BudgetAdministration,
    budget: BudgetPolicy,
    at: { readonly nowMs: number; readonly version: string },
  ): Promise<{ readonly sums: AccountSums; readonly readMs: number }> {
    for (const [name, kept] of this.#kept) {
      const isFresh = at.version === kept.version && at.nowMs - kept.readMs < sumsKeptMs;
      if (!isFresh) this.#kept.delete(name);
    }
    let known = this.#kept.get(budget.name);
    if (known === undefined) {
      known = { readMs: at.nowMs, version: at.version, sums: sumUp(budgets, budget, at.nowMs) };
      this.#kept.set(budget.name, known);
      known.sums.catch(() => this.#kept.delete(budget.name));
    }
    return { sums: await known.sums, readMs: known.readMs };
  }
}

async function sumUp(
  budgets: BudgetAdministration,
  budget: BudgetPolicy,
  nowMs: number,
): Promise<AccountSums> {
  const window = budgets.window(budget);
  const sums: AccountSums = {
    accountCount: 0,
    spent: 0n,
    reserved: 0n,
    spentBefore: 0n,
    lost: 0n,
    capacity: 0n,
    warnedCount: 0,
    overCount: 0,
    projectedOverCount: 0,
    usedRatioMax: 0,
    projected: window === undefined ? undefined : 0n,
  };
  await eachAccount(budgets, budget, (account) => addTo(sums, account, { budget, window, nowMs }));
  return sums;
}

function addTo(
  sums: AccountSums,
  account: AccountView,
  at: {
    readonly budget: BudgetPolicy;
    readonly window: Window | undefined;
    readonly nowMs: number;
  },
): void {
  const { budget, window, nowMs } = at;
  const ratio = usedRatioOf(account);
  const isOver = account.spent + account.reserved >= account.capacity;
  sums.accountCount += 1;
  sums.spent += BigInt(account.spent);
  sums.reserved += BigInt(account.reserved);
  sums.spentBefore += BigInt(account.spentBefore);
  sums.lost += BigInt(account.lost);
  sums.capacity += BigInt(account.capacity);
  sums.usedRatioMax = Math.max(sums.usedRatioMax, ratio);
  if (isOver) sums.overCount += 1;
  else if (ratio >= (budget.warnAt ?? Number.POSITIVE_INFINITY)) sums.warnedCount += 1;
  if (window === undefined) return;
  const { amount } = projectWindow(account, window, nowMs * 1_000);
  sums.projected = (sums.projected ?? 0n) + BigInt(amount);
  if (!isOver && amount > account.capacity) sums.projectedOverCount += 1;
}

/** Reads all accounts of a budget, page by page. */
export async function eachAccount(
  budgets: BudgetAdministration,
  budget: BudgetPolicy,
  visit: (account: AccountView) => void,
): Promise<void> {
  let cursor = "";
  do {
    const page = await budgets.accounts(budget, cursor);
    for (const account of page.rows) visit(account);
    cursor = page.cursor;
  } while (cursor !== "");
}
