import { describe, expect, it } from "vitest";
import { amountMax } from "../../../../src/core/budgets/account.js";
import { type BudgetUnit, budgetCost } from "../../../../src/core/budgets/budget-cost.js";
import type { ModelPrice } from "../../../../src/core/budgets/price.js";
import type { Usage } from "../../../../src/core/budgets/usage.js";

const price: ModelPrice = {
  model: "*",
  validFromMs: undefined,
  tiers: [
    {
      aboveInputTokens: 0,
      input: 1_000_000,
      cached: 500_000,
      cacheWrite: 2_000_000,
      output: 3_000_000,
    },
  ],
  call: 11,
};

const usage: Usage = {
  inputTokens: 100,
  cachedTokens: 20,
  cacheWriteTokens: 3,
  outputTokens: 50,
  reasoningTokens: 40,
  responseBytes: 777,
  durationMs: 1_234,
  customUnits: 9,
};

describe("budgetCost()", () => {
  it.each<{ kind: BudgetUnit["kind"]; cost: number; missing: readonly string[]; least: number }>([
    { kind: "tokens", cost: 173, missing: ["inputTokens", "outputTokens"], least: 0 },
    { kind: "inputTokens", cost: 123, missing: ["inputTokens"], least: 0 },
    { kind: "outputTokens", cost: 50, missing: ["outputTokens"], least: 0 },
    { kind: "calls", cost: 1, missing: [], least: 1 },
    { kind: "bytes", cost: 777, missing: ["responseBytes"], least: 0 },
    { kind: "seconds", cost: 1_234, missing: ["durationMs"], least: 0 },
    { kind: "units", cost: 9, missing: ["customUnits"], least: 0 },
    { kind: "money", cost: 277, missing: ["inputTokens", "outputTokens"], least: 11 },
  ])("counts $kind, and says what nobody has reported", ({ kind, cost, missing, least }) => {
    expect(budgetCost({ kind }, usage, price)).toEqual({ cost, missing: [] });
    expect(budgetCost({ kind }, {}, price)).toEqual({ cost: least, missing });
  });

  it("counts what is known of a call that has ended early", () => {
    const begun = { inputTokens: 100 };
    expect(budgetCost({ kind: "tokens" }, begun, undefined)).toEqual({
      cost: 100,
      missing: ["outputTokens"],
    });
    expect(budgetCost({ kind: "money" }, usage, undefined).cost).toBe(0);
  });

  it("never exceeds the largest amount", () => {
    const dear = { ...price, call: amountMax };
    expect(budgetCost({ kind: "money" }, usage, dear).cost).toBe(amountMax);
  });
});
