import type { PriceTable } from "../../core/budgets/price.js";
import { amountWords } from "../../policy/budgets/amount.js";
import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import { overWords, periodWords } from "../../policy/diff/limit-words.js";
import { drawTable } from "../terminal/text-table.js";

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

/** Budgets that the text shows; JSON shows all. */
const reportBudgetsMax = 50;

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
export function renderBudgets({ budgets, prices }: Budgets): string {
  if (budgets.length === 0) return "";
  const titles = ["budget", "charges", "per", "amount", "period", "over"];
  const shown = budgets.slice(0, reportBudgetsMax);
  const rows = summarizeBudgets({ budgets: shown, prices }).map((one) => {
    return [one.name, one.charges, one.per, one.amount, one.period, one.over];
  });
  const table = drawTable(
    titles.map((title) => ({ title })),
    rows,
  );
  const moreCount = budgets.length - rows.length;
  const more = moreCount > 0 ? [`  and ${moreCount} more`] : [];
  return ["Budgets", ...table.map((line) => `  ${line}`), ...more].join("\n");
}
