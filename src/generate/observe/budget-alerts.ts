import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import type { GeneratedPolicy } from "../base/generator.js";
import type { AlertRule } from "./alert.js";
import { counterTrial, gaugeTrial, growing } from "./alert-trials.js";
import type { AlertName } from "./alert-words.js";
import { by, grows, series } from "./promql.js";

const ofBudget: readonly string[] = ["budget"];
const usedRatio = "headgate_budget_used_ratio_max";
const reservations = "headgate_budget_reservations_total";
const settlements = "headgate_budget_settlements_total";
const usage = "headgate_usage_calls_total";
const spent = "headgate_budget_spent_total";

/** Returns the alerts of budgets. */
export function budgetAlerts({ budgets }: GeneratedPolicy): readonly AlertRule<AlertName>[] {
  const [first] = budgets;
  if (first === undefined) return [];
  return [
    ...budgets.flatMap(nearEndAlerts),
    ...budgets.flatMap(paceAlerts),
    ...rulesOf({ budget: first.name }),
  ];
}

function nearEndAlerts({ name, warnAt }: BudgetPolicy): readonly AlertRule<AlertName>[] {
  if (warnAt === undefined || warnAt >= 1) return [];
  const labels = { budget: name };
  return [
    {
      alert: "HeadgateBudgetNearEnd",
      expr: `${by("max", ofBudget)} (${series(usedRatio, labels)}) >= ${warnAt}`,
      forMinutes: 5,
      trial: gaugeTrial(usedRatio, { raising: 1, quiet: warnAt / 2 }, { series: labels }),
    },
  ];
}

/** Range of the rate, and how many such ranges a window has. */
const paces = {
  hour: { range: "10m", count: 6 },
  day: { range: "2h", count: 12 },
  week: { range: "1d", count: 7 },
  month: { range: "3d", count: 10 },
  year: { range: "7d", count: 52 },
} as const;

/** Only for a budget with a single account, since the number of accounts is otherwise unknown. */
function paceAlerts({
  name,
  per,
  period,
  amount,
  overrides,
}: BudgetPolicy): readonly AlertRule<AlertName>[] {
  if (per.length > 0 || overrides.length > 0 || period.kind !== "calendar") return [];
  const labels = { budget: name };
  const { range, count } = paces[period.unit];
  const grown = `${by("sum", ofBudget)} (increase(${series(spent, labels)}[${range}]))`;
  return [
    {
      alert: "HeadgateBudgetWillExceed",
      expr: `${count} * ${grown} > ${amount}`,
      forMinutes: 15,
      trial: {
        raising: [growing(spent, labels, Math.max(1, amount))],
        labels: { job: "headgate", ...labels },
        quiet: [growing(spent, labels, 0)],
      },
    },
  ];
}

/** @param labels of a budget, for trials */
function rulesOf(labels: Readonly<Record<string, string>>): readonly AlertRule<AlertName>[] {
  const service = { service: "llm" };
  const found = (origin: string, perMinute: number) =>
    growing(usage, { ...service, origin }, perMinute);
  return [
    {
      alert: "HeadgateBudgetExhausted",
      expr: `${grows(series(reservations, { result: "refused" }), ofBudget)} > 0`,
      forMinutes: 5,
      trial: counterTrial(reservations, {
        series: { ...labels, result: "refused" },
        alert: labels,
      }),
    },
    {
      alert: "HeadgateBudgetStoreAway",
      expr: `${grows("headgate_budget_store_failures_total", ofBudget)} > 0`,
      forMinutes: 2,
      trial: counterTrial("headgate_budget_store_failures_total", { series: labels }),
    },
    {
      alert: "HeadgateSettlementsDropped",
      expr: `${grows("headgate_budget_dropped_settlements_total")} > 0`,
      forMinutes: 0,
      trial: counterTrial("headgate_budget_dropped_settlements_total"),
    },
    {
      alert: "HeadgateSettlementsLate",
      expr: `${grows(series(settlements, { result: "late" }), ofBudget)} > 0`,
      forMinutes: 10,
      trial: counterTrial(settlements, { series: { ...labels, result: "late" }, alert: labels }),
    },
    {
      alert: "HeadgateReservationsLost",
      expr: `${grows("headgate_budget_expired_reservations_total")} > 0`,
      forMinutes: 0,
      trial: counterTrial("headgate_budget_expired_reservations_total"),
    },
    {
      alert: "HeadgateUsageUnknown",
      expr:
        `${grows(series(usage, { origin: ["partial", "estimated"] }), ["service"])} > ` +
        `0.2 * ${grows(usage, ["service"])}`,
      forMinutes: 10,
      trial: {
        raising: [found("partial", 30), found("reported", 70)],
        labels: { job: "headgate", ...service },
        quiet: [found("estimated", 3), found("reported", 70)],
      },
    },
  ];
}
