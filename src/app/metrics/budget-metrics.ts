import { snakeCase } from "../../core/base/text.js";
import type { UsageCount } from "../../core/budgets/usage.js";
import {
  type BudgetCounts,
  reservationResults,
  settleResults,
  usageOrigins,
} from "../../decide/budget/budget-counts.js";
import type { Budgets } from "../../decide/budget/budgets.js";
import type { StoreBudgetLedger } from "../../fleet/budgets/store-budget-ledger.js";
import type { TopUpRegistry } from "../../fleet/records/top-up-registry.js";
import type { MetricGroup, ReadMetric } from "../base/metrics.js";

interface BudgetMetricsParts {
  readonly budgets: Pick<Budgets, "budgets" | "usage" | "openCount">;
  readonly ledger: Pick<StoreBudgetLedger, "queuedCount"> & {
    readonly counts: Pick<
      StoreBudgetLedger["counts"],
      "expiredCount" | "droppedCount" | "batchCount"
    >;
  };
  readonly topUps: Pick<TopUpRegistry, "list" | "unreadableCount">;
}

/** Returns the metrics of budgets, by kind. All labels are policy names, or from closed sets. */
export function budgetMetrics(parts: BudgetMetricsParts): MetricGroup {
  return {
    gauges: gaugesOf(parts),
    counters: [...reservationCounters(parts), ...ledgerCounters(parts), ...usageCounters(parts)],
  };
}

/** Reads one series for each budget. */
function byBudget(
  { budgets }: BudgetMetricsParts,
  metric: Pick<ReadMetric, "name" | "help">,
  read: (counts: BudgetCounts) => number,
): ReadMetric {
  return {
    ...metric,
    labelNames: ["budget"],
    read: (add) => {
      for (const [budget, { counts }] of budgets.budgets) add(read(counts), { budget });
    },
  };
}

function gaugesOf(parts: BudgetMetricsParts): readonly ReadMetric[] {
  const { budgets, ledger, topUps } = parts;
  return [
    {
      name: "headgate_budget_capacity",
      help: "The amount of a budget in the policy, in its unit; top-ups and overrides aside.",
      labelNames: ["budget"],
      read: (add) => {
        for (const [budget, { policy }] of budgets.budgets) add(policy.amount, { budget });
      },
    },
    byBudget(
      parts,
      {
        name: "headgate_budget_reserved",
        help: "Estimates of calls in flight that this replica admitted, in the budget's unit.",
      },
      ({ reserved }) => reserved,
    ),
    byBudget(
      parts,
      {
        name: "headgate_budget_used_ratio_max",
        help:
          "The highest used ratio of an account of a budget that this replica has seen in the " +
          "last one to two minutes, reservations included.",
      },
      ({ usedRatio }) => usedRatio,
    ),
    {
      name: "headgate_budget_open_calls",
      help: "Calls that this replica admitted and has not settled.",
      read: (add) => add(budgets.openCount),
    },
    {
      name: "headgate_budget_queued_settlements",
      help: "Ended calls that the store has not charged yet.",
      read: (add) => add(ledger.queuedCount),
    },
    {
      name: "headgate_budget_top_ups",
      help: "Top-ups of operators that have not expired.",
      read: (add) => add(topUps.list().length),
    },
    {
      name: "headgate_budget_top_up_records_unreadable",
      help: "Top-up records in the store that this version cannot read; skipped.",
      read: (add) => add(topUps.unreadableCount),
    },
  ];
}

function reservationCounters(parts: BudgetMetricsParts): readonly ReadMetric[] {
  const { budgets } = parts;
  return [
    {
      name: "headgate_budget_reservations_total",
      help:
        "Calls that a budget was asked for, by result: `reserved` had room; `refused`, " +
        "`annotated`, `fallback` and `dry_run` had none.",
      labelNames: ["budget", "result"],
      read: (add) => {
        for (const [budget, { counts }] of budgets.budgets) {
          for (const result of reservationResults) {
            add(counts.reservations[result], { budget, result: snakeCase(result) });
          }
        }
      },
    },
    byBudget(
      parts,
      {
        name: "headgate_budget_warned_calls_total",
        help: "Calls that passed with the headers of warnAt.",
      },
      ({ warnedCount }) => warnedCount,
    ),
    byBudget(
      parts,
      {
        name: "headgate_budget_store_failures_total",
        help: "Calls that onStoreFailure of the budget decided.",
      },
      ({ withoutStoreCount }) => withoutStoreCount,
    ),
    {
      name: "headgate_budget_settlements_total",
      help:
        "Settlements by this replica, by result: `settled`; `late` (after the lease of the " +
        "replica that admitted the call); `unknown` (settled before: nothing was charged).",
      labelNames: ["budget", "result"],
      read: (add) => {
        for (const [budget, { counts }] of budgets.budgets) {
          for (const result of settleResults) {
            add(counts.settlements[result], { budget, result });
          }
        }
      },
    },
    byBudget(
      parts,
      {
        name: "headgate_budget_spent_total",
        help: "Costs of calls that this replica settled, in the budget's unit.",
      },
      ({ spent }) => spent,
    ),
    byBudget(
      parts,
      {
        name: "headgate_budget_overshoot_total",
        help: "The sum by which calls cost more than was reserved, in the budget's unit.",
      },
      ({ overshoot }) => overshoot,
    ),
  ];
}

function ledgerCounters({ ledger: { counts } }: BudgetMetricsParts): readonly ReadMetric[] {
  return [
    {
      name: "headgate_budget_expired_reservations_total",
      help: "Reservations of lost replicas that this one released or charged.",
      read: (add) => add(counts.expiredCount),
    },
    {
      name: "headgate_budget_dropped_settlements_total",
      help: "Ended calls that were never charged: too many waited for the store, or it was full.",
      read: (add) => add(counts.droppedCount),
    },
    {
      name: "headgate_budget_store_calls_total",
      help: "Calls to the store with reservations and settlements.",
      read: (add) => add(counts.batchCount),
    },
  ];
}

/** Counts of usage that are tokens, with their label. */
const tokenKinds: Readonly<Partial<Record<UsageCount, string>>> = {
  inputTokens: "input",
  cachedTokens: "cached",
  cacheWriteTokens: "cache_write",
  outputTokens: "output",
};

function usageCounters({ budgets }: BudgetMetricsParts): readonly ReadMetric[] {
  return [
    {
      name: "headgate_usage_tokens_total",
      help:
        "Tokens of calls that this replica settled, by service, by model as the price table " +
        "names it (empty without one), and by kind: `input` (not cached), `cached`, " +
        "`cache_write`, `output`.",
      labelNames: ["service", "model", "kind"],
      read: (add) => {
        for (const [service, { byModel }] of budgets.usage) {
          for (const [model, sums] of byModel) {
            for (const [count, sum] of sums) {
              const kind = tokenKinds[count];
              if (kind !== undefined) add(sum, { service, model, kind });
            }
          }
        }
      },
    },
    {
      name: "headgate_usage_calls_total",
      help:
        "Calls that this replica settled, by how their usage was found: `reported`; `partial` " +
        "(partly by the size of the response); `estimated` (nobody reported it in time); `none` " +
        "(no response, or an error).",
      labelNames: ["service", "origin"],
      read: (add) => {
        for (const [service, { origins }] of budgets.usage) {
          for (const origin of usageOrigins) add(origins[origin], { service, origin });
        }
      },
    },
  ];
}
