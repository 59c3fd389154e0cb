import { amountMax } from "./account.js";
import { type ModelPrice, priceOfUsage } from "./price.js";
import type { Usage, UsageCount } from "./usage.js";

/** The unit of a budget. Amounts are integers in this unit. */
export type BudgetUnit =
  /** Input, cached, cache-written and output tokens together. */
  | { readonly kind: "tokens" }
  | { readonly kind: "inputTokens" }
  | { readonly kind: "outputTokens" }
  | { readonly kind: "calls" }
  /** Bytes of responses. */
  | { readonly kind: "bytes" }
  /** In milliseconds, although people read and write seconds. */
  | { readonly kind: "seconds" }
  /** `customUnits` of the usage, such as GPU seconds. */
  | { readonly kind: "units" }
  /** Fractions of the price table's currency: 10^-`decimals`. */
  | { readonly kind: "money" };

/** The cost of a call in the unit of a budget. */
export interface BudgetCost {
  /** 0 to `amountMax`. */
  readonly cost: number;
  /**
   * Counts that the unit needs and that were not reported. They cost nothing here, so the cost is a
   * lower bound in that case. Never includes cache tokens: most calls have none.
   */
  readonly missing: readonly UsageCount[];
}

/** The counts that each unit needs. */
const neededCounts: Readonly<Record<BudgetUnit["kind"], readonly UsageCount[]>> = {
  tokens: ["inputTokens", "outputTokens"],
  inputTokens: ["inputTokens"],
  outputTokens: ["outputTokens"],
  calls: [],
  bytes: ["responseBytes"],
  seconds: ["durationMs"],
  units: ["customUnits"],
  money: ["inputTokens", "outputTokens"],
};

/** Returns the counts that a unit needs. Cache tokens are optional in addition. */
export function countsOf({ kind }: BudgetUnit): readonly UsageCount[] {
  return neededCounts[kind];
}

/**
 * Returns the cost of a call in a budget's unit.
 *
 * @param price of the model, for `money`. Without one, the cost is 0
 */
export function budgetCost(
  unit: BudgetUnit,
  usage: Usage,
  price: ModelPrice | undefined,
): BudgetCost {
  const missing = countsOf(unit).filter((count) => usage[count] === undefined);
  return { cost: costOf(unit, usage, price), missing };
}

/** Returns the cost alone. Counts that were not reported cost nothing. See `budgetCost`. */
export function costOf(unit: BudgetUnit, usage: Usage, price: ModelPrice | undefined): number {
  return Math.min(exactCostOf(unit, usage, price), amountMax);
}

function exactCostOf({ kind }: BudgetUnit, usage: Usage, price: ModelPrice | undefined): number {
  const { inputTokens = 0, cachedTokens = 0, cacheWriteTokens = 0, outputTokens = 0 } = usage;
  const allInput = inputTokens + cachedTokens + cacheWriteTokens;
  switch (kind) {
    case "tokens":
      return allInput + outputTokens;
    case "inputTokens":
      return allInput;
    case "outputTokens":
      return outputTokens;
    case "calls":
      return 1;
    case "bytes":
      return usage.responseBytes ?? 0;
    case "seconds":
      return usage.durationMs ?? 0;
    case "units":
      return usage.customUnits ?? 0;
    case "money":
      return price === undefined ? 0 : priceOfUsage(price, usage);
  }
}
