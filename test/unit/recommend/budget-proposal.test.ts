import { describe, expect, it } from "vitest";
import type { PriceTable } from "../../../src/core/budgets/price.js";
import type { BudgetPolicy } from "../../../src/policy/budgets/budget-policy.js";
import { type ObservedBudget, proposeBudget } from "../../../src/recommend/budget-proposal.js";

const dayUs = 86_400_000_000;

const budget: BudgetPolicy = {
  name: "team",
  services: ["llm"],
  models: [],
  per: [{ kind: "header", header: "x-team" }, { kind: "model" }],
  unit: { kind: "tokens" },
  amount: 900,
  overrides: [],
  period: { kind: "calendar", unit: "day", timeZone: "UTC" },
  over: undefined,
  warnAt: undefined,
  warnHeaders: [],
  onStoreFailure: "local",
  whenLost: "release",
  isDryRun: false,
};

const observed: ObservedBudget = {
  budget,
  isKnown: true,
  callCount: 500,
  silentCount: 0,
  peaks: Array.from({ length: 100 }, (_, i) => 10 * (i + 1)),
  spanUs: 10 * dayUs,
};

const fitting = { prices: undefined, refusedCallerRatioMax: 0, headroom: undefined };

const prices: PriceTable = { currency: "EUR", decimals: 6, models: [] };

function proposalOf(...given: Parameters<typeof proposeBudget>) {
  const found = proposeBudget(...given);
  if (found.kind !== "proposed") throw new Error(found.missing.join());
  return found.proposal;
}

describe("proposeBudget()", () => {
  it("proposes what the busiest account needs, with headroom, to two digits upwards", () => {
    expect(proposalOf(observed, fitting)).toEqual({
      budget: "team",
      amount: "1300 tokens",
      was: "900 tokens",
      line: undefined,
      accountCount: 100,
      callCount: 500,
      overCount: 0,
      overNowCount: 10,
      why:
        "1.25 times the 1,000 tokens that the largest of 100 accounts in 10 days of logs spent " +
        "each day in UTC",
    });
  });

  it("leaves out as many accounts as may be refused", () => {
    const some = proposalOf(observed, { ...fitting, refusedCallerRatioMax: 0.5, headroom: 1 });
    expect(some).toMatchObject({ amount: "500 tokens", overCount: 50 });
  });

  it("stretches a log that is shorter than the period", () => {
    const month = {
      ...budget,
      period: { kind: "calendar", unit: "month", timeZone: "UTC" },
    } as const;
    const proposal = proposalOf({ ...observed, budget: month }, { ...fitting, headroom: 1 });
    expect(proposal).toMatchObject({
      amount: "3000 tokens",
      why: expect.stringContaining("which is 3,000 tokens in a whole period"),
    });
  });

  it("writes a whole budget where the policy has none", () => {
    const money = { ...budget, unit: { kind: "money" } } as const;
    const parts = { ...observed, budget: money, isKnown: false, peaks: [1_234_567] };
    expect(proposalOf(parts, { ...fitting, prices, headroom: 1 })).toMatchObject({
      was: undefined,
      amount: "1.30 EUR",
      line:
        "- {name: team, services: [llm], per: [{header: x-team}, model], amount: 1.30 EUR, " +
        "period: day}",
    });
  });

  it.each([
    { parts: { callCount: 120, silentCount: 21 }, missing: "99 calls with a cost" },
    { parts: { spanUs: 3_599_999_999 }, missing: "less than an hour" },
    { parts: { peaks: [] }, missing: "no account" },
  ])("proposes nothing of too little: $missing", ({ parts, missing }) => {
    expect(proposeBudget({ ...observed, ...parts }, fitting)).toEqual({
      kind: "notEnough",
      missing: [expect.stringContaining(missing)],
    });
  });
});
