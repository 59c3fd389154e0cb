import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../../src/policy/parse.js";
import type { BudgetProposal } from "../../../src/recommend/budget-proposal.js";
import { editBudgets } from "../../../src/recommend/edit-budgets.js";

const head = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: llm}
spec:
  services: [{name: llm, usage: {}}]
`;

const proposal: BudgetProposal = {
  budget: "team",
  amount: "700 tokens",
  was: "5 tokens",
  line: undefined,
  accountCount: 1,
  callCount: 1,
  overCount: 0,
  overNowCount: 1,
  why: "because",
};

const added = {
  ...proposal,
  was: undefined,
  budget: "llm-day",
  line: "- {name: llm-day, services: [llm], per: [model], amount: 700 tokens, period: day}",
};

function edited(budgets: string, ...proposals: readonly BudgetProposal[]): string {
  const result = editBudgets([{ file: "a.yaml", text: `${head}${budgets}` }], proposals);
  if (result.kind === "problem") throw new Error(result.message);
  expect(parsePolicy(result.sources)).toMatchObject({ kind: "policy" });
  return (result.sources[0]?.text ?? "").slice(head.length);
}

describe("editBudgets()", () => {
  it("changes the amount of a budget, and leaves all else", () => {
    const before =
      "  budgets:\n    - name: team\n      amount: 5 tokens # guess\n      period: day\n";
    expect(edited(before, proposal)).toBe(
      "  budgets:\n    - name: team\n      amount: 700 tokens # because\n      period: day\n",
    );
  });

  it("adds budgets where the policy has none, and behind those that it has", () => {
    const first = edited("", added);
    expect(first).toBe(`  budgets:\n    ${added.line} # because\n`);
    const second = { ...added, line: added.line.replace("llm-day", "llm-month") };
    expect(edited(first, second)).toBe(`${first}    ${second.line} # because\n`);
  });
});
