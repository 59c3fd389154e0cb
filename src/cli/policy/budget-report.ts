import type { PriceTable } from "../../core/budgets/price.js";
import { amountWords } from "../../policy/budgets/amount.js";
import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import { overWords, periodWords } from "../../policy/diff/limit-words.js";
import { renderSection } from "./policy-section.js";

/** Summary of a budget in a policy, in words. The same names are used in JSON. */
interface BudgetSummary {
  readonly name: string;
  /** Services and models whose calls count. */
  readonly charges: string;
  readonly per: string;
  readonly amount: string;
  readonly period: string;
  readonly over: string;
}

interface Budgets {
  readonly budgets: readonly BudgetPolicy[];
  readonly prices: PriceTable | undefined;
}

/** Summarizes each budget. */
export function summarizeBudgets({ budgets, prices }: Budgets): readonly BudgetSummary[] {
  return budgets.map(({ name, services, models, per, amount, unit, overrides, ...rest }) => {
    const { period, over, isDryRun } = rest;
    const others = overrides.length === 0 ? "" : `, ${overrides.length} overridden`;
    const whose = [services?.join(","), models.join(",")].filter((part) => part);
    return {
      name,
      charges: whose.join(" ") || "all",
      per: per.map((one) => (one.kind === "header" ? one.header : one.kind)).join(", ") || "-",
      amount: `${amountWords(amount, unit, prices)}${others}`,
      period: periodWords(period),
      over: isDryRun ? "dry run" : over === undefined ? "refuses" : overWords(over),
    };
  });
}

/** Returns the budgets as a table; empty if there are none. */
export function renderBudgets(budgets: Budgets): string {
  return renderSection("Budgets", summarizeBudgets(budgets), {
    budget: "name",
    charges: "charges",
    per: "per",
    amount: "amount",
    period: "period",
    over: "over",
  });
}
