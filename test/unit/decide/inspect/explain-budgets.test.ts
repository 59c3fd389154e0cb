import { describe, expect, it } from "vitest";
import { LearnedUsage } from "../../../../src/core/budgets/learned-usage.js";
import { BudgetExplainer } from "../../../../src/decide/inspect/explain-budgets.js";
import { BudgetRig, policyOfText } from "../../../support/budget-rig.js";

const text = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: llm}
spec:
  budgets:
    - {name: own, services: [llm], per: [{header: x-team}], amount: 1_000 outputTokens, period: day}
    - {name: other, services: [llm], amount: 1_000 outputTokens, period: day}
    - name: soft
      services: [soft]
      amount: 1_000 outputTokens
      period: day
      warnAt: 0.5
      over: {annotate: {headers: {x-soft: "over"}}}
    - name: cheap
      services: [soft]
      amount: 1_000 outputTokens
      period: day
      over: {fallback: {header: {x-tier: cheap}}}
    - {name: none, services: [shut], amount: 0 outputTokens, period: day}
  services:
    - name: llm
      hosts: [llm.example]
      usage: {model: {fixed: m}, from: body, estimate: {initial: 100}}
    - name: soft
      hosts: [soft.example]
      usage: {model: {fixed: m}, from: body, estimate: {initial: 100}}
    - {name: shut, hosts: [shut.example], usage: {model: {fixed: m}, from: body}}
`;

function open(source = text) {
  const rig = new BudgetRig(source);
  const learned = new LearnedUsage();
  const explainer = new BudgetExplainer({
    learned,
    topUps: rig.topUps,
    digest: (one) => `d${one.length}`,
    read: (accounts) => rig.store.read(accounts),
  });
  const explain = (
    service: string,
    hidden: readonly string[] = [],
    sight: "verdict" | "none" = "verdict",
  ) => {
    const found = rig.policy.services.find(({ name }) => name === service);
    if (found === undefined) throw new Error("no such service");
    return explainer.explain({
      policy: policyOfText(source),
      service: found,
      request: { headers: new Map([["x-team", "a"]]), attributes: new Map(), isObserved: false },
      sightOf: ({ name }) => (hidden.includes(name) ? sight : "all"),
      epochUs: rig.clock.epochUs(),
    });
  };
  return { rig, learned, explain };
}

describe("BudgetExplainer", () => {
  it("shows an account as it is, and what a call reserves", async () => {
    const { rig, explain } = open();
    await rig.spend("own", ["a"], { estimate: 1, cost: 850 });
    await rig.spend("own", ["a"], { estimate: 40 });
    const explained = await explain("llm");
    expect(explained?.budgets[0]).toMatchObject({
      spent: 850,
      reserved: 40,
      capacity: 1_000,
      isOver: false,
      effect: "fits",
      estimate: { amount: 100, source: "initial" },
    });
    rig.close();
  });

  it("says that a call is refused by a budget that the caller may not see", async () => {
    const { rig, explain } = open();
    await rig.spend("other", [], { estimate: 1, cost: 1_000 });
    expect((await explain("llm"))?.isDenied).toBe(true);
    const hidden = await explain("llm", ["other"]);
    expect(hidden?.budgets.map(({ budget }) => budget.name)).toEqual(["own"]);
    expect(hidden).toMatchObject({ isDenied: true, isDeniedByHidden: true });
    // A candidate's amounts are of the caller's choice: its verdict would tell what is spent.
    expect(await explain("llm", ["other"], "none")).toMatchObject({ isDenied: false });
    rig.close();
  });

  it("estimates by what calls of the account and the model have used", async () => {
    const { rig, learned, explain } = open();
    const known = learned.of({ caller: "llm\nm\nown/a", model: "llm\nm" });
    const wanted = new Set(["outputTokens"] as const);
    for (let i = 0; i < 10; i += 1) {
      known.learn({ usage: { outputTokens: 200 }, requestBytes: undefined, wanted });
    }
    const [own] = (await explain("llm"))?.budgets ?? [];
    expect(own?.estimate).toEqual({ amount: 216, source: "learned" });
    rig.close();
  });

  it("shows what soft budgets change about a call, unless the caller may not see it", async () => {
    const { rig, explain } = open();
    expect((await explain("soft"))?.marks).toBeUndefined();
    await rig.spend("soft", [], { estimate: 1, cost: 1_000 });
    await rig.spend("cheap", [], { estimate: 1, cost: 1_000 });
    const explained = await explain("soft");
    expect(explained?.isDenied).toBe(false);
    expect(explained?.budgets).toMatchObject([
      { isOver: true, effect: "annotate", isWarned: true },
      { isOver: true, effect: "fallback", isWarned: false },
    ]);
    expect(explained?.marks).toEqual({
      setHeaders: [
        { name: "x-soft", value: "over" },
        { name: "x-headgate-budget-warning", value: "soft" },
      ],
      fallback: { kind: "header", header: { name: "x-tier", value: "cheap" } },
    });
    expect((await explain("soft", ["soft"]))?.marks?.setHeaders).toEqual([]);
    rig.close();
  });

  it.each([
    { model: "gpt-4o", price: { model: "gpt-*", isKnown: true } },
    { model: "unheard-of", price: { model: "*", isKnown: false } },
  ])("names the row of prices for $model, and whether it is its own", async ({ model, price }) => {
    const row = "{model: gpt-*, input: 2, output: 10}";
    const prices = `prices: {currency: USD, models: [${row}]}\n  budgets:`;
    const { rig, explain } = open(
      text.replace("budgets:", prices).replaceAll("fixed: m", `fixed: ${model}`),
    );
    expect(await explain("llm")).toMatchObject({ model, price });
    rig.close();
  });

  it("names no price where the policy has none", async () => {
    const { rig, explain } = open();
    expect((await explain("llm"))?.price).toBeUndefined();
    rig.close();
  });

  it("gives no time for an account without a capacity", async () => {
    const { rig, explain } = open();
    const [only] = (await explain("shut"))?.budgets ?? [];
    expect(only).toMatchObject({ capacity: 0, isOver: true, effect: "refuse" });
    expect(only?.retryUs).toBeUndefined();
    rig.close();
  });
});
