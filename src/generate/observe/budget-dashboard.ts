import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import type { Panel } from "./dashboard.js";
import { lines, own, stacked, sumRate } from "./panels.js";

/** Returns the panels of budgets: how full they are, results of calls, and usage. */
export function budgetPanels(budgets: readonly BudgetPolicy[]): readonly Panel[] {
  const ofBudget = (metric: string, how: "max" | "sum") =>
    Object.fromEntries(
      budgets.map(({ name }) => [name, `${how}(${own(metric, { budget: name })})`]),
    );
  return [
    lines(
      {
        title: "Fullest account",
        about: "The highest used ratio of an account of each budget, calls in flight included.",
        unit: "percentunit",
        marks: [{ from: 1, color: "red" }],
      },
      ofBudget("headgate_budget_used_ratio_max", "max"),
    ),
    stacked(
      {
        title: "Calls by result",
        about: "Reservations per second of all budgets, by result.",
        unit: "reqps",
      },
      Object.fromEntries(
        ["reserved", "refused", "annotated", "fallback", "dry_run"].map((result) => [
          result,
          sumRate(own("headgate_budget_reservations_total", { result })),
        ]),
      ),
    ),
    lines(
      {
        title: "Spent per hour",
        about: "Costs of ended calls in each budget's own unit.",
        unit: "short",
      },
      Object.fromEntries(
        budgets.map(({ name }) => [
          name,
          `3600 * ${sumRate(own("headgate_budget_spent_total", { budget: name }))}`,
        ]),
      ),
    ),
    lines(
      {
        title: "Reserved",
        about: "Estimates of calls in flight in each budget's own unit.",
        unit: "short",
      },
      ofBudget("headgate_budget_reserved", "sum"),
    ),
    ...usagePanels(),
  ];
}

function usagePanels(): readonly Panel[] {
  return [
    stacked(
      {
        title: "Tokens",
        about: "Tokens of ended calls per second, by kind.",
        unit: "short",
      },
      Object.fromEntries(
        ["input", "cached", "cache_write", "output"].map((kind) => [
          kind,
          sumRate(own("headgate_usage_tokens_total", { kind })),
        ]),
      ),
    ),
    stacked(
      {
        title: "How usage was found",
        about: "Ended calls per second: reported, partly counted by size, or estimated.",
        unit: "reqps",
      },
      Object.fromEntries(
        ["reported", "partial", "estimated", "none"].map((origin) => [
          origin,
          sumRate(own("headgate_usage_calls_total", { origin })),
        ]),
      ),
    ),
    lines(
      {
        title: "Settlements that wait",
        about: "Ended calls that the store has not charged yet, and what was dropped or lost.",
        unit: "short",
      },
      {
        waiting: `sum(${own("headgate_budget_queued_settlements")})`,
        "dropped per second": sumRate(own("headgate_budget_dropped_settlements_total")),
        "lost per second": sumRate(own("headgate_budget_expired_reservations_total")),
      },
    ),
  ];
}
