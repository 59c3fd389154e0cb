import type { BudgetPolicy } from "../../../policy/budgets/budget-policy.js";
import type { AccountView, BudgetAdministration } from "../budget-parts.js";
import { eachAccount } from "./account-sums.js";

/** A place among accounts that are sorted by a measure, and if it is equal by a digest. */
export interface RankedPlace {
  /** A whole number. */
  readonly measure: number;
  /** Hexadecimal. */
  readonly digest: string;
}

interface Ranked extends RankedPlace {
  readonly account: AccountView;
}

/** Which accounts are wanted, and in which order. */
export interface Ranking {
  readonly measureOf: (account: AccountView) => number;
  readonly digestOf: (account: AccountView) => string;
  readonly isWanted: (account: AccountView) => boolean;
  /** Only accounts that come after it. Undefined: from the largest. */
  readonly after: RankedPlace | undefined;
  readonly countMax: number;
}

/** Returns the accounts with the largest measure, without keeping all of them. */
export async function rankAccounts(
  budgets: BudgetAdministration,
  budget: BudgetPolicy,
  { measureOf, digestOf, isWanted, after, countMax }: Ranking,
): Promise<{ readonly accounts: readonly AccountView[]; readonly next: RankedPlace | undefined }> {
  const best: Ranked[] = [];
  await eachAccount(budgets, budget, (account) => {
    if (!isWanted(account)) return;
    const measure = measureOf(account);
    const last = best[countMax];
    // Most are below the last one, and need no digest.
    if (last !== undefined && measure < last.measure) return;
    if (after !== undefined && measure > after.measure) return;
    const ranked = { measure, digest: digestOf(account), account };
    if (after !== undefined && compareRanks(ranked, after) <= 0) return;
    best.splice(rankOf(best, ranked), 0, ranked);
    if (best.length > countMax + 1) best.pop();
  });
  const shown = best.slice(0, countMax);
  const next = best.length > countMax ? shown.at(-1) : undefined;
  return { accounts: shown.map(({ account }) => account), next };
}

/** The largest first. */
function compareRanks(a: RankedPlace, b: RankedPlace): number {
  if (a.measure !== b.measure) return b.measure - a.measure;
  return a.digest < b.digest ? -1 : a.digest > b.digest ? 1 : 0;
}

/** Returns the position of an account among sorted ones. */
function rankOf(sorted: readonly Ranked[], ranked: RankedPlace): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const one = sorted[middle];
    if (one !== undefined && compareRanks(one, ranked) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
