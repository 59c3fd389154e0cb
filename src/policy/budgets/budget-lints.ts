import type { HeaderField } from "../../core/base/header-field.js";
import { type BudgetUnit, countsOf } from "../../core/budgets/budget-cost.js";
import { type PriceTable, priceOfUsage } from "../../core/budgets/price.js";
import { parseGlob } from "../../core/collections/glob.js";
import { warnOfCluster } from "../limits/over.js";
import { quoteText } from "../problems/problem.js";
import { amountWords } from "./amount.js";
import type { BudgetDraft, MeasuredService } from "./budget-draft.js";
import type { BudgetPolicy, ServiceUsage } from "./budget-policy.js";

/** A valid budget, and how it was written. */
interface ResolvedBudget {
  readonly budget: BudgetPolicy;
  readonly draft: BudgetDraft;
}

/** Data for the warnings. */
interface LintContext {
  readonly budgets: readonly ResolvedBudget[];
  readonly services: readonly MeasuredService[];
  readonly prices: PriceTable | undefined;
  /** Whether a cluster is one of the policy's services. */
  readonly knowsCluster: (cluster: string) => boolean;
}

/** Warns of valid settings that are probably mistakes. */
export function lintBudgets({ budgets, services, prices, knowsCluster }: LintContext): void {
  for (const service of services) warnOfIdleUsage(service, budgets);
  for (const read of budgets) {
    const charged = services.filter(({ name }) => charges(read.budget, name));
    warnOfSilence(read, charged);
    if (read.budget.unit.kind === "money" && prices !== undefined) {
      warnOfUnpriced(read, charged, prices);
    }
    warnOfSmallAmount(read, charged, prices);
    warnOfStranger(read, knowsCluster);
    warnOfReadHeaders(read, budgets, charged);
  }
}

function charges({ services }: BudgetPolicy, service: string): boolean {
  return services === undefined || services.includes(service);
}

function warnOfIdleUsage(
  { name, node, reader }: MeasuredService,
  budgets: readonly ResolvedBudget[],
): void {
  if (budgets.some(({ budget }) => charges(budget, name))) return;
  reader.warn(node, {
    id: "HG251",
    message: `no budget charges the calls of ${quoteText(name)}`,
    expected: "a budget of the service under `budgets`, unless only the usage report is wanted",
  });
}

/** Reports whether a response contains one of the counts that make up a unit. */
function reports({ source }: ServiceUsage, unit: BudgetUnit): boolean {
  const needed = countsOf(unit).filter((count) => {
    return count !== "responseBytes" && count !== "durationMs";
  });
  if (needed.length === 0) return true;
  if (source.kind === "none") return false;
  if (source.kind === "body" && source.format !== "json") return unit.kind !== "units";
  return needed.some((count) => Object.hasOwn(source.fields, count));
}

/** Warns of units that services do not report: calls are charged their estimates. */
function warnOfSilence(
  { budget, draft: { block } }: ResolvedBudget,
  charged: readonly MeasuredService[],
): void {
  const silent = charged.filter(({ usage }) => !reports(usage, budget.unit));
  const [first] = silent;
  // A budget that names no services accepts those that do not report.
  if (budget.services === undefined && silent.length < charged.length) return;
  if (first === undefined && charged.length > 0) return;
  const counts = countsOf(budget.unit).join(" and ");
  block.reader.warn(block.field("amount")?.key ?? block.fields.node, {
    id: "HG252",
    message:
      first === undefined
        ? "no service has `usage`, so the budget charges nothing"
        : `${quoteText(first.name)} does not report ${counts}, so calls cost their estimates`,
    expected:
      first === undefined
        ? "usage: {} at a service"
        : "another `from` in the service's `usage`, or another unit",
  });
}

/** Warns of models that are charged at the highest price of the table. */
function warnOfUnpriced(
  { budget, draft: { block } }: ResolvedBudget,
  charged: readonly MeasuredService[],
  { models: prices }: PriceTable,
): void {
  const fixed = charged.flatMap(({ usage: { model } }) => {
    return model.kind === "fixed" && countsModel(budget, model.model) ? [model.model] : [];
  });
  const unpriced = [...budget.models, ...fixed].find((model) => {
    return !prices.some((price) => mayOverlap(price.model, model));
  });
  if (unpriced === undefined) return;
  block.reader.warn(block.field("models")?.key ?? block.fields.node, {
    id: "HG253",
    message: `no price matches the model ${quoteText(unpriced)}; it costs the dearest of all`,
    expected: "a price of the model under `prices`",
  });
}

function countsModel({ models }: BudgetPolicy, model: string): boolean {
  return models.length === 0 || models.some((pattern) => mayOverlap(pattern, model));
}

/** Returns false if no text can match both patterns, judged by their ends. */
function mayOverlap(one: string, other: string): boolean {
  const [a, b] = [parseGlob(one), parseGlob(other)];
  if (a.last === undefined && b.last === undefined) return one === other;
  const [aEnd, bEnd] = [a.last ?? a.first, b.last ?? b.first];
  return (
    (a.first.startsWith(b.first) || b.first.startsWith(a.first)) &&
    (aEnd.endsWith(bEnd) || bEnd.endsWith(aEnd))
  );
}

/**
 * Warns of accounts that hold less than the reservation for a call of unknown cost. The reservation
 * is cut to the account's amount, so calls pass one at a time until costs are learned.
 */
function warnOfSmallAmount(
  { budget, draft: { block } }: ResolvedBudget,
  charged: readonly MeasuredService[],
  prices: PriceTable | undefined,
): void {
  const { unit } = budget;
  const amounts = [budget.amount, ...budget.overrides.map(({ amount }) => amount)];
  const least = Math.min(...amounts.filter((amount) => amount > 0));
  for (const { name, usage } of charged) {
    const { initial } = usage.estimate;
    const estimate = estimateOf(budget, initial, prices);
    if (estimate <= least || !Number.isFinite(least)) continue;
    const fitting = Math.max(1, Math.floor((initial * least) / estimate));
    const words = (count: number): string => amountWords(count, unit, prices);
    block.reader.warn(block.field("amount")?.key ?? block.fields.node, {
      id: "HG254",
      message:
        `a call of ${quoteText(name)} is estimated at ${words(estimate)}, and an account ` +
        `holds ${words(least)}`,
      expected: `at least ${words(estimate)}, or usage: {estimate: {initial: ${fitting}}}`,
    });
    return;
  }
}

/** Returns the reservation for a call of that many output tokens, or units. */
function estimateOf(budget: BudgetPolicy, initial: number, prices: PriceTable | undefined): number {
  const { kind } = budget.unit;
  if (kind === "calls") return 1;
  if (kind !== "money") return initial;
  const rows = prices?.models ?? [];
  const own = rows.filter(({ model }) => countsModel(budget, model));
  const costs = (own.length > 0 ? own : rows).flatMap((row) =>
    row.tiers.map((tier) => priceOfUsage({ ...row, tiers: [tier] }, { outputTokens: initial })),
  );
  return Math.max(0, ...costs);
}

/** Warns of headers that are both set and read: a set header is removed if callers send it. */
function warnOfReadHeaders(
  { budget, draft: { block } }: ResolvedBudget,
  budgets: readonly ResolvedBudget[],
  charged: readonly MeasuredService[],
): void {
  const keys = budgets.flatMap((one) => one.budget.per);
  const sources = charged.flatMap(({ usage }) => [usage.model, usage.declaredMax]);
  const read = new Set(
    [...keys, ...sources].flatMap((one) => {
      return one !== undefined && one.kind === "header" ? [one.header] : [];
    }),
  );
  const { over, warnAt, warnHeaders } = budget;
  const own = over?.kind === "annotate" ? over.headers : fallbackHeaders(over);
  const found = [...own, ...(warnAt === undefined ? [] : warnHeaders)].find(({ name }) => {
    return read.has(name);
  });
  if (found === undefined) return;
  const place = own.includes(found) ? "over" : "warnHeaders";
  block.reader.warn(block.field(place)?.key ?? block.fields.node, {
    id: "HG256",
    message: `${quoteText(found.name)} is set here, and read from callers elsewhere`,
    expected: "a header that nothing of the policy reads",
  });
}

function fallbackHeaders(over: BudgetPolicy["over"]): readonly HeaderField[] {
  return over?.kind === "fallback" && over.to.kind === "header" ? [over.to.header] : [];
}

function warnOfStranger(
  { budget: { over }, draft: { block } }: ResolvedBudget,
  knowsCluster: (cluster: string) => boolean,
): void {
  if (over?.kind !== "fallback" || over.to.kind !== "cluster") return;
  if (knowsCluster(over.to.cluster)) return;
  warnOfCluster(block.reader, block.field("over")?.key ?? block.fields.node, over.to.cluster);
}
