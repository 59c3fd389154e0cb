import { describe, expect, it } from "vitest";
import { BudgetedRig, policyOf } from "../../../support/budgeted-rig.js";
import { epochUsOf } from "../../../support/calendar-time.js";
import { FakeClock } from "../../../support/fake-clock.js";

const text = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: tests}
spec:
  budgets:
    - {name: month, amount: 1_000 tokens, period: month, timeZone: Europe/Berlin}
  services:
    - name: llm
      usage:
        model: {fixed: large}
        declaredMax: {header: x-max}
        from: {headers: {inputTokens: x-inputtokens, outputTokens: x-outputtokens}}
`;

/** A rig at a time, in UTC. */
async function rigAt(time: string): Promise<BudgetedRig> {
  const clock = new FakeClock({ epochUs: epochUsOf(time) });
  return new BudgetedRig({ policy: await policyOf(text), clock });
}

const wanting = (tokens: number) => ({ headers: { "x-max": String(tokens) } });

describe("the end of a month in Berlin", () => {
  // Berlin is two hours ahead of UTC in summer, and one in winter.
  it.each([
    ["in winter", "2026-02-28T22:59:59Z"],
    ["in the month in which summer time begins", "2026-03-31T21:59:59Z"],
    ["in the month in which it ends", "2026-10-31T22:59:59Z"],
    ["at the end of the year", "2026-12-31T22:59:59Z"],
  ])("%s gives a new budget, and the old month pays for what was begun in it", async (_, time) => {
    const rig = await rigAt(time);
    const before = await rig.ask(wanting(900));
    expect(before.verdict).toBe("admitted");
    expect((await rig.account("month")).reserved).toBeGreaterThanOrEqual(900);
    expect((await rig.ask(wanting(500))).verdict).toBe("budget");
    await rig.advance(1_000);
    // Nothing of the old month counts.
    expect(await rig.account("month")).toEqual({ spent: 0, reserved: 0 });
    const after = await rig.ask(wanting(900));
    expect(after.verdict).toBe("admitted");
    await rig.complete(before, { inputTokens: 10, outputTokens: 700 });
    expect((await rig.account("month")).spent).toBe(0);
    await rig.complete(after, { inputTokens: 10, outputTokens: 300 });
    expect(await rig.account("month")).toEqual({ spent: 310, reserved: 0 });
    rig.close();
  });

  it("is no day earlier or later than Berlin's", async () => {
    const rig = await rigAt("2026-03-31T20:59:59Z");
    await rig.complete(await rig.ask(wanting(100)), { inputTokens: 0, outputTokens: 100 });
    await rig.advance(3_600_000);
    expect((await rig.account("month")).spent).toBe(100);
    await rig.advance(1_000);
    expect((await rig.account("month")).spent).toBe(0);
    rig.close();
  });
});
