import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../../src/policy/parse.js";
import { buildPolicy, type Policy } from "../../../src/policy/policy.js";
import { BudgetLog, budgetSumsMax, withBudgetFacts } from "../../../src/recommend/budget-log.js";
import type { LoggedRequest, WantedFacts } from "../../../src/simulate/logged-request.js";

const dayUs = 86_400_000_000;
/** 2026-01-05 at midnight, in UTC. */
const startUs = 1_767_571_200_000_000;

function policyOf(budgets: string, usage = "usage: {}"): Policy {
  const text = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: llm}
spec:
  prices: {currency: EUR, decimals: 6, models: [{model: a, input: 1, output: 2}]}
  services: [{name: llm, hosts: [llm.example], ${usage}}]
${budgets}`;
  const parsed = parsePolicy([{ file: "a.yaml", text }]);
  if (parsed.kind === "problems") throw new Error(JSON.stringify(parsed.problems));
  return buildPolicy("v1", parsed);
}

const plain: WantedFacts = { headers: ["x-first"], address: "unwanted" };

interface Call {
  readonly team?: string;
  readonly model?: string;
  readonly timeUs?: number;
  readonly tokens?: number | undefined;
}

function observe(policy: Policy, calls: readonly Call[]) {
  const { headers } = withBudgetFacts(plain, policy);
  const log = new BudgetLog(policy, headers);
  for (const { team = "red", model = "a", timeUs = startUs, tokens } of calls) {
    const counts = tokens === undefined ? {} : { inputTokens: tokens, outputTokens: 0 };
    const request: LoggedRequest = {
      timeUs,
      wasLimited: false,
      authority: "llm.example",
      address: "10.0.0.1",
      headers: headers.map((name) => (name === "x-team" ? team : "")),
      usage: { model, counts },
    };
    log.take(request);
  }
  return { observed: log.finish(), warnings: log.warnings() };
}

const perTeam = "name: team, per: [{header: x-team}], amount: 100 tokens";

describe("BudgetLog", () => {
  it("asks logs for what budgets look at, behind what is asked for already", () => {
    const policy = policyOf(
      "  budgets: [{name: b, per: [{header: x-team}, remoteAddress], amount: 5 calls, " +
        "period: day}]",
      "usage: {model: {header: x-model}}",
    );
    expect(withBudgetFacts(plain, policy)).toEqual({
      headers: ["x-first", "x-team", "x-model"],
      address: "wanted",
      usage: "wanted",
    });
    const without = buildPolicy("v1", { domains: [], rules: [], services: [], quotas: [] });
    expect(withBudgetFacts(plain, without)).toBe(plain);
  });

  it("sums what accounts use in a period, and keeps the busiest one", () => {
    const policy = policyOf(`  budgets: [{${perTeam}, period: day, timeZone: Europe/Berlin}]`);
    const { observed } = observe(policy, [
      { team: "red", tokens: 10 },
      { team: "red", tokens: 20 },
      // In Berlin the next day has begun.
      { team: "red", tokens: 25, timeUs: startUs + dayUs - 3_600_000_000 },
      { team: "blue", tokens: 7, timeUs: startUs + dayUs },
    ]);
    expect(observed).toMatchObject([
      { callCount: 4, silentCount: 0, spanUs: dayUs, peaks: [30, 7], isKnown: true },
    ]);
  });

  it("prices calls by their models, and leaves overridden accounts and other models out", () => {
    const policy = policyOf(
      "  budgets: [{name: money, models: [a*], per: [{header: x-team}], amount: 1 EUR, " +
        "period: 1d, overrides: [{values: [big*], amount: 5 EUR}]}]",
    );
    const { observed } = observe(policy, [
      { tokens: 1_000_000 },
      { tokens: 1_000_000, team: "bigger" },
      { tokens: 1_000_000, model: "b" },
    ]);
    expect(observed).toMatchObject([{ callCount: 1, peaks: [1_000_000] }]);
  });

  it("counts calls that say nothing of what is counted", () => {
    const policy = policyOf(`  budgets: [{${perTeam}, period: day}]`);
    const { observed } = observe(policy, [{ tokens: 5 }, { tokens: undefined }]);
    expect(observed).toMatchObject([{ callCount: 2, silentCount: 1, peaks: [5] }]);
  });

  it("looks at a day and a month of each caller and model where there is no budget", () => {
    const { observed } = observe(policyOf(""), [{ tokens: 5 }]);
    expect(observed).toMatchObject([
      { isKnown: false, budget: { name: "llm-day", unit: { kind: "money" }, services: ["llm"] } },
      { isKnown: false, budget: { name: "llm-month", per: [{}, { kind: "model" }] } },
    ]);
  });

  it("holds a bound of sums, and says what is left out", () => {
    const policy = policyOf(`  budgets: [{${perTeam}, period: day}]`);
    const calls = Array.from({ length: budgetSumsMax + 5 }, (_, i) => ({
      team: `t${i}`,
      tokens: 1,
    }));
    const { observed, warnings } = observe(policy, calls);
    expect(observed[0]?.peaks).toHaveLength(budgetSumsMax);
    expect(warnings).toEqual([expect.stringContaining("more than 200000 accounts")]);
  });
});
