import { formatTimestamp } from "../../core/base/timestamp.js";
import type { ModelPrice, PriceTable } from "../../core/budgets/price.js";
import { amountWords } from "../budgets/amount.js";
import type { AccountPart } from "../budgets/budget-form.js";
import { budget as budgetForm } from "../budgets/budget-form.js";
import type { BudgetPolicy } from "../budgets/budget-policy.js";
import type { ChangeEffect } from "../text/form.js";
import { fieldChanges } from "./field-changes.js";
import { fieldWords, overEffect, overWords, periodWords } from "./limit-words.js";
import { opposite, type PolicyChange } from "./policy-change.js";

/** The parts of a policy that define budgets. */
interface ComparedBudgets {
  readonly budgets: readonly BudgetPolicy[];
  readonly prices: PriceTable | undefined;
}

/** Returns the changes of budgets and prices. Budgets are matched by name. */
export function compareBudgets(
  before: ComparedBudgets,
  after: ComparedBudgets,
): readonly PolicyChange[] {
  const young = new Map(after.budgets.map((budget) => [budget.name, budget]));
  const old = new Set(before.budgets.map(({ name }) => name));
  return [
    ...before.budgets.flatMap((budget) => {
      const now = young.get(budget.name);
      if (now === undefined) return [goneBudget(budget)];
      return changedBudget([budget, before.prices], [now, after.prices]);
    }),
    ...after.budgets
      .filter(({ name }) => !old.has(name))
      .map((budget) => newBudget(budget, after.prices)),
    ...comparePrices(before.prices, after.prices),
  ];
}

function budgetPlace({ name }: BudgetPolicy): string {
  return `budget ${name}`;
}

/** Returns the effect of adding a budget. */
function bites({ over, isDryRun }: BudgetPolicy): ChangeEffect {
  return over === undefined && !isDryRun ? "stricter" : "different";
}

function goneBudget(budget: BudgetPolicy): PolicyChange {
  const words = "the budget is removed: calls pass, and what was spent is forgotten";
  return { effect: opposite(bites(budget)), place: budgetPlace(budget), words };
}

function newBudget(budget: BudgetPolicy, prices: PriceTable | undefined): PolicyChange {
  const { amount, unit, per, period } = budget;
  const whose = per.length === 0 ? "for all" : `per ${per.map(partWords).join(", ")}`;
  const most = amountWords(amount, unit, prices);
  const words = `a new budget of ${most} ${whose}, ${periodWords(period)}`;
  return { effect: bites(budget), place: budgetPlace(budget), words };
}

function partWords(part: AccountPart): string {
  return part.kind === "header" ? `header ${part.header}` : part.kind;
}

type PricedBudget = readonly [budget: BudgetPolicy, prices: PriceTable | undefined];

function changedBudget(before: PricedBudget, after: PricedBudget): readonly PolicyChange[] {
  const pair = { before: reportedOf(before), after: reportedOf(after) };
  return fieldChanges({ ...pair, form: budgetForm, isGenerated: false }).map((change) => ({
    effect: effects[change.name]?.(before[0], after[0]) ?? change.effect,
    place: budgetPlace(after[0]),
    words: change.words,
  }));
}

/** Returns a budget for the report: amounts, periods and lists as texts. */
function reportedOf([budget, prices]: PricedBudget): object {
  const { amount, unit, overrides, per, period, over, warnHeaders, ...rest } = budget;
  return {
    ...rest,
    amount: amountWords(amount, unit, prices),
    overrides: overrides.map((one) => {
      return `${one.values.join(", ")}: ${amountWords(one.amount, unit, prices)}`;
    }),
    per: per.map(partWords),
    period: periodWords(period),
    over: over === undefined ? "refuse" : overWords(over),
    warnHeaders: warnHeaders.map(fieldWords),
  };
}

/** Effects that cannot be derived from a number. */
const effects: Readonly<
  Record<string, (before: BudgetPolicy, after: BudgetPolicy) => ChangeEffect>
> = {
  amount: (before, after) => amountsEffect(before, after, ({ amount }) => [amount]),
  overrides(before, after) {
    const accounts = [before, after].map(({ overrides }) =>
      JSON.stringify(overrides.map(({ values }) => values)),
    );
    if (accounts[0] !== accounts[1]) return "different";
    return amountsEffect(before, after, ({ overrides }) => overrides.map(({ amount }) => amount));
  },
  over: (before, after) => overEffect(before.over, after.over),
  onStoreFailure: (before, after) =>
    failureOrder[after.onStoreFailure] > failureOrder[before.onStoreFailure]
      ? "stricter"
      : "looser",
  whenLost: (_, { whenLost }) => (whenLost === "charge" ? "stricter" : "looser"),
  dryRun: (_, { isDryRun }) => (isDryRun ? "looser" : "stricter"),
  services: (before, after) => scopeEffect(before.services, after.services),
  models: (before, after) =>
    scopeEffect(
      before.models.length === 0 ? undefined : before.models,
      after.models.length === 0 ? undefined : after.models,
    ),
};

const failureOrder = { allow: 0, local: 1, deny: 2 } as const;

function amountsEffect(
  before: BudgetPolicy,
  after: BudgetPolicy,
  amountsOf: (budget: BudgetPolicy) => readonly number[],
): ChangeEffect {
  if (before.unit.kind !== after.unit.kind) return "different";
  return opposite(numbersEffect(amountsOf(before), amountsOf(after)));
}

/** Returns the effect if larger numbers are stricter; `different` if some rise and some fall. */
function numbersEffect(was: readonly number[], is: readonly number[]): ChangeEffect {
  const isUp = is.some((one, i) => one > (was[i] ?? 0));
  const isDown = is.some((one, i) => one < (was[i] ?? 0));
  return isUp === isDown ? "different" : isUp ? "stricter" : "looser";
}

/** Returns the effect of a new scope; more calls are stricter. @param was undefined: all */
function scopeEffect(
  was: readonly string[] | undefined,
  is: readonly string[] | undefined,
): ChangeEffect {
  if (was === undefined) return "looser";
  if (is === undefined || was.every((name) => is.includes(name))) return "stricter";
  return is.every((name) => was.includes(name)) ? "looser" : "different";
}

/** Returns the changes of prices, row by row. Rows are matched by model and time. */
function comparePrices(
  before: PriceTable | undefined,
  after: PriceTable | undefined,
): readonly PolicyChange[] {
  const place = "prices";
  if (before === undefined && after === undefined) return [];
  if (before === undefined) return [{ effect: "different", place, words: "prices are new" }];
  if (after === undefined) return [{ effect: "different", place, words: "prices are removed" }];
  const changes: PolicyChange[] = [];
  const unitOf = ({ currency, decimals }: PriceTable): string =>
    `${currency} with ${decimals} decimals`;
  const isSameUnit = unitOf(before) === unitOf(after);
  if (!isSameUnit) {
    const units = `from ${unitOf(before)} to ${unitOf(after)}`;
    const words = `the unit changes ${units}; what was spent is not converted`;
    changes.push({ effect: "different", place, words });
  }
  const old = new Map(before.models.map((row) => [rowName(row), row]));
  const young = new Set(after.models.map(rowName));
  for (const row of after.models) {
    const was = old.get(rowName(row));
    const [words, effect] = isSameUnit && was !== undefined ? rowChange(was, row) : [undefined];
    if (was === undefined) {
      changes.push({ effect: "different", place, words: `a new price of ${rowName(row)}` });
    } else if (words !== undefined) {
      changes.push({ effect, place, words });
    }
  }
  for (const name of old.keys()) {
    if (young.has(name)) continue;
    changes.push({ effect: "different", place, words: `the price of ${name} is removed` });
  }
  const kept = [...old.keys()].filter((name) => young.has(name));
  const now = [...young].filter((name) => old.has(name));
  if (kept.join() !== now.join()) {
    const words = "their order changes, and of rows that match a model the first one counts";
    changes.push({ effect: "different", place, words });
  }
  return changes;
}

function rowName({ model, validFromMs }: ModelPrice): string {
  const from = validFromMs === undefined ? "" : ` from ${formatTimestamp(validFromMs * 1_000)} on`;
  return `${model}${from}`;
}

/** Describes the change of a row. Undefined words: nothing changes. */
function rowChange(
  before: ModelPrice,
  after: ModelPrice,
): readonly [words: string, effect: ChangeEffect] | readonly [undefined] {
  const bounds = [before, after].map(({ tiers }) => tiers.map((tier) => tier.aboveInputTokens));
  const name = rowName(after);
  if (bounds[0]?.join() !== bounds[1]?.join()) return [`the tiers of ${name} change`, "different"];
  const [was, is] = [pricesOf(before), pricesOf(after)];
  if (was.join() === is.join()) return [undefined];
  const effect = numbersEffect(was, is);
  const how = effect === "stricter" ? "rises" : effect === "looser" ? "falls" : "changes";
  return [`the price of ${name} ${how}`, effect];
}

function pricesOf({ tiers, call }: ModelPrice): readonly number[] {
  return [
    call,
    ...tiers.flatMap((tier) => [tier.input, tier.cached, tier.cacheWrite, tier.output]),
  ];
}
