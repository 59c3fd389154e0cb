import type { Clock } from "../../core/base/clock.js";
import type { AccountKey, AccountLaw } from "../../core/budgets/account.js";
import { isAccountKey, namedAccountKey, readAccountKey } from "../../core/budgets/account-key.js";
import type { TopUp } from "../../core/budgets/top-up.js";
import { type Window, windowAt } from "../../core/limits/window.js";
import type { Budgets } from "../../decide/budget/budgets.js";
import type { CompiledBudget } from "../../decide/budget/compiled-budget.js";
import type { TopUpRegistry } from "../../fleet/records/top-up-registry.js";
import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import type {
  AccountView,
  BudgetAdministration,
  TopUpView,
  UsageView,
} from "../../rpc/admin/budget-parts.js";
import type { AccountRow, BudgetStore, UsageRow } from "../../store/coordination/budget-store.js";
import type { ChangeOutcome } from "../../store/coordination/record-store.js";
import { sha256 } from "../base/sha256.js";

interface BudgetAdminParts {
  readonly budgets: Pick<Budgets, "budgets">;
  readonly store: Pick<BudgetStore, "list" | "read" | "refund" | "usage">;
  readonly topUps: TopUpRegistry;
  readonly clock: Clock;
}

/** Maximum time of the store for an operator's request, in milliseconds. */
const storeMsMax = 2_000;

/** Views and changes of budgets for operators: the ledger, with its keys decoded. */
export class BudgetAdmin implements BudgetAdministration {
  readonly #parts: BudgetAdminParts;

  constructor(parts: BudgetAdminParts) {
    this.#parts = parts;
  }

  window(budget: BudgetPolicy): Window | undefined {
    const law = this.#lawOf(budget);
    return law?.kind === "window" ? windowAt(law.windows, this.#nowUs) : undefined;
  }

  async account(budget: BudgetPolicy, values: readonly string[]): Promise<AccountView> {
    const law = this.#lawOf(budget);
    const account = keyOf(budget, values);
    const known = law && (await this.#parts.store.read([{ account, law }], this.#deadlineMs));
    return this.#view(budget, values, known?.[0]);
  }

  async accounts(budget: BudgetPolicy, cursor: string) {
    const law = this.#lawOf(budget);
    if (law === undefined) return { rows: [], cursor: "" };
    const query = { budget: budget.name, law, cursor };
    const page = await this.#parts.store.list(query, this.#deadlineMs);
    const rows = page.rows.map((row) => {
      return this.#view(budget, readAccountKey(row.account).values, row);
    });
    return { rows, cursor: page.cursor };
  }

  async refund(
    budget: BudgetPolicy,
    refund: { readonly values: readonly string[]; readonly id: string; readonly amount: number },
  ): Promise<number> {
    const law = this.#lawOf(budget);
    if (law === undefined) return 0;
    const { id, amount, values } = refund;
    const account = keyOf(budget, values);
    return this.#parts.store.refund({ id, account, law, amount }, this.#deadlineMs);
  }

  async usage(day: string, cursor: string) {
    const page = await this.#parts.store.usage({ day, cursor }, this.#deadlineMs);
    return { rows: page.rows.map(usageView), cursor: page.cursor };
  }

  topUps(): Iterable<TopUpView> {
    return this.#parts.topUps.list();
  }

  changeTopUp(
    id: string,
    topUp: TopUp | undefined,
    change: Parameters<TopUpRegistry["change"]>[2],
  ): Promise<ChangeOutcome> {
    return this.#parts.topUps.change(id, topUp, change);
  }

  #view(budget: BudgetPolicy, values: readonly string[], row: AccountRow | undefined): AccountView {
    const { topUps, clock } = this.#parts;
    const nowMs = clock.epochUs() / 1_000;
    const { spent = 0, reserved = 0, spentBefore = 0, lost = 0 } = row ?? {};
    return {
      values,
      capacity: this.#compiled(budget)?.capacityOf(values, topUps, nowMs) ?? 0,
      toppedUp: topUps.topUpOf(budget.name, values, nowMs),
      spent,
      reserved,
      spentBefore,
      lost,
    };
  }

  /** Undefined if a reload has removed the budget meanwhile. */
  #lawOf(budget: BudgetPolicy): AccountLaw | undefined {
    return this.#compiled(budget)?.lawAt(this.#nowUs);
  }

  #compiled({ name }: BudgetPolicy): CompiledBudget | undefined {
    return this.#parts.budgets.budgets.get(name);
  }

  get #nowUs(): number {
    return this.#parts.clock.epochUs();
  }

  get #deadlineMs(): number {
    return this.#parts.clock.monotonicMs() + storeMsMax;
  }
}

function keyOf({ name }: BudgetPolicy, values: readonly string[]): AccountKey {
  return namedAccountKey({ budget: name, values }, sha256);
}

function usageView({ account: key, ...row }: UsageRow): UsageView {
  const account = key !== "" && isAccountKey(key) ? readAccountKey(key) : undefined;
  // Sums without names: of the store beyond its bound, and of calls that the replica cannot keep.
  const isRest = key === "" && row.model === "";
  return { ...row, account, isRest };
}
