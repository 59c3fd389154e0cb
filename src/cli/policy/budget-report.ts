import type { PriceTable } from "../../core/budgets/price.js";
import { amountWords } from "../../policy/budgets/amount.js";
import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import { overWords, periodWords } from "../../policy/diff/limit-words.js";
import { renderSection } from "./policy-section.js";

/** What a policy says of a budget, in words: for people, and by the same names for machines. */
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

/** Sums up each budget. */
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

/** The budgets as a table; empty where there are none. */
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
