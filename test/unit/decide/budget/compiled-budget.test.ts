import { describe, expect, it } from "vitest";
import { amountMax } from "../../../../src/core/budgets/account.js";
import { BudgetCounts } from "../../../../src/decide/budget/budget-counts.js";
import { CompiledBudget } from "../../../../src/decide/budget/compiled-budget.js";
import { policyOf } from "../../../support/budgeted-rig.js";
import { epochUsOf } from "../../../support/calendar-time.js";

async function budgetOf(fields: string): Promise<CompiledBudget> {
  const policy = await policyOf(`
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: llm}
spec:
  budgets:
    - {name: own, ${fields}}
  services:
    - {name: llm, hosts: [llm.example.com], usage: {model: {header: x-model}}}
`);
  const [budget] = policy.budgets;
  if (budget === undefined) throw new Error("it has a budget");
  return new CompiledBudget(budget, new BudgetCounts(), (text) => `digest-${text.length}`);
}

const daily = "amount: 100 calls, period: day";

describe("CompiledBudget", () => {
  it("applies to the models that it names, and where nobody could read the model", async () => {
    const budget = await budgetOf(`${daily}, models: [gpt-*, o1]`);
    const applies = ["gpt-4o", "o1", "o1-mini", ""].map((model) => budget.appliesTo(model));
    expect(applies).toEqual([true, true, false, true]);
    expect((await budgetOf(daily)).appliesTo("o1-mini")).toBe(true);
  });

  it("has an account for the values of each request, in the order of the policy", async () => {
    const budget = await budgetOf(`${daily}, per: [model, service, {header: x-team}]`);
    const headers = new Map([["x-team", "research"]]);
    const request = { headers, attributes: new Map(), model: "gpt-4o", service: "llm" };
    const values = budget.valuesOf(request);
    expect(values).toEqual(["gpt-4o", "llm", "research"]);
    expect(budget.accountOf(values)).toBe("own/gpt-4o/llm/research");
    expect(budget.valuesOf({ ...request, headers: new Map() })).toEqual(["gpt-4o", "llm", ""]);
  });

  it("has the same account for the same value, and others for others", async () => {
    const budget = await budgetOf(`${daily}, per: [{header: x-team}]`);
    const accounts = ["a", "b", "a", "x".repeat(200)].map((value) => budget.accountOf([value]));
    expect(accounts).toEqual(["own/a", "own/b", "own/a", `own/${"x".repeat(32)}#digest-200`]);
    const all = await budgetOf(daily);
    expect(all.accountOf([])).toBe("own");
  });

  it("has the amount of the first override that matches, and what was added", async () => {
    const overrides = [
      "{values: [research, gpt-*], amount: 900 calls}",
      '{values: [research, "*"], amount: 500 calls}',
    ].join(", ");
    const per = "per: [{header: x-team}, model]";
    const budget = await budgetOf(`${daily}, ${per}, overrides: [${overrides}]`);
    const capacityOf = (values: readonly string[], added = 0): number =>
      budget.capacityOf(values, { topUpOf: () => added }, 0);
    expect(capacityOf(["research", "gpt-4o"])).toBe(900);
    expect(capacityOf(["research", "o1"])).toBe(500);
    expect(capacityOf(["sales", "gpt-4o"])).toBe(100);
    expect(capacityOf(["sales", "gpt-4o"], 30)).toBe(130);
    expect(capacityOf(["research", "o1"], 30)).toBe(530);
    expect(capacityOf(["sales", "o1"], amountMax)).toBe(amountMax);
  });

  it("goes by the calendar's window of a time, and by the next one from its start on", async () => {
    const budget = await budgetOf(`${daily}, timeZone: Europe/Berlin`);
    const windowAt = (time: string) => {
      const law = budget.lawAt(epochUsOf(time));
      if (law.kind !== "window") throw new Error("it has windows");
      return law.windows.startUs;
    };
    const first = epochUsOf("2026-07-01T22:00:00Z");
    expect(windowAt("2026-07-01T22:00:00Z")).toBe(first);
    expect(windowAt("2026-07-02T21:59:59Z")).toBe(first);
    expect(windowAt("2026-07-02T22:00:00Z")).toBe(epochUsOf("2026-07-02T22:00:00Z"));
    // A clock that is set back.
    expect(windowAt("2026-07-02T21:59:59Z")).toBe(first);
  });

  it("drains over a period that no calendar has", async () => {
    const budget = await budgetOf("amount: 100 calls, period: 90s");
    expect(budget.lawAt(0)).toEqual({ kind: "drain", periodUs: 90_000_000 });
    expect(budget.lawAt(epochUsOf("2026-07-01T22:00:00Z"))).toBe(budget.lawAt(0));
  });
});
