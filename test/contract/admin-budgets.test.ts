import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { adminClients, startAdminApp } from "../support/admin.js";
import { budgetsText, policyOfText } from "../support/budget-rig.js";
import { startRedis } from "../support/redis.js";
import { SpendingReplica } from "../support/redis-budgets.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** 10^-9 of a dollar. */
const usd = 1_000_000_000;
const account = { budget: "team-month", values: ["research", "gpt-4o"] };

/** Two replicas over one Redis, and a third that calls are charged by. */
async function start() {
  const server = await startRedis(stage);
  const env = { REDIS_URL: `127.0.0.1:${server.port}`, HEADGATE_ADMIN_OPEN: "true" };
  const apps = await Promise.all([0, 1].map(() => startAdminApp(stage, budgetsText, env)));
  const [one, other] = apps.map(({ port }) => adminClients(port));
  if (one === undefined || other === undefined) throw new Error("there are two");
  const spender = await SpendingReplica.open(stage, server.port, policyOfText(budgetsText));
  return { server, one, other, spender };
}

describe("budgets in the admin API of two replicas over Redis", () => {
  it("are the same at each, with top-ups, refunds and their audit", async () => {
    const { one, other, spender } = await start();
    await spender.spend("team-month", account.values, { estimate: usd, cost: 300 * usd });
    await spender.spend("team-month", account.values, { estimate: 50 * usd });
    await spender.spend("team-month", ["sales", "gpt-4o"], { estimate: usd, cost: 90 * usd });
    for (const { budgets } of [one, other]) {
      const [known] = (await budgets.listBudgets({ budget: "team-month" })).budgets;
      expect(known?.sums).toMatchObject({
        accountCount: 2n,
        spent: BigInt(390 * usd),
        reserved: BigInt(50 * usd),
        warnedCount: 2n,
      });
      const { accounts } = await budgets.listBudgetAccounts({ budget: "team-month" });
      expect(accounts.map(({ account: of }) => of?.values[0])).toEqual(["research", "sales"]);
    }
    const { topUp } = await one.budgets.topUpBudget({
      account,
      amount: BigInt(100 * usd),
      reason: "launch",
      id: "launch-week",
    });
    await waitFor("the other knows it", async () => {
      const answer = await other.budgets.getBudgetAccount({ account });
      return answer.account?.capacity === BigInt(500 * usd) && answer.topUps.length === 1;
    });
    const refund = { account, amount: BigInt(20 * usd), reason: "outage", id: "case-42" };
    const first = await one.budgets.refundBudget(refund);
    const again = await other.budgets.refundBudget(refund);
    expect([first.refunded, again.refunded]).toEqual([BigInt(20 * usd), BigInt(20 * usd)]);
    expect(again.account).toMatchObject({ spent: BigInt(280 * usd), reserved: BigInt(50 * usd) });
    await other.budgets.deleteTopUp({
      budget: "team-month",
      id: topUp?.id ?? "",
      reason: "it is over",
    });
    await waitFor("the first knows it", async () => {
      return (await one.budgets.listTopUps({})).topUps.length === 0;
    });
    const { entries } = await one.fleet.listAudit({});
    expect(entries.map(({ action, subject }) => `${action} ${subject}`)).toEqual([
      "DeleteTopUp team-month",
      "RefundBudget team-month",
      "RefundBudget team-month",
      "TopUpBudget team-month",
    ]);
  });

  it("have a report of what calls used", async () => {
    const { one, other, spender } = await start();
    const row = { service: "llm", callCount: 3, counts: { inputTokens: 7, outputTokens: 2 } };
    const of = { budget: "team-month", values: account.values };
    await spender.use(
      { ...row, ...of, model: "gpt-4o", cost: 5 },
      { ...row, ...of, model: "gpt-5", cost: 50 },
      { ...row, budget: "everybody-day", values: [], model: "gpt-5", cost: 50 },
    );
    const asked = { budget: "team-month", groupBy: ["model"] };
    for (const { budgets } of [one, other]) {
      const { rows } = await budgets.listUsage(asked);
      expect(rows.map(({ model, cost, inputTokens }) => [model, cost, inputTokens])).toEqual([
        ["gpt-5", 50n, 7n],
        ["gpt-4o", 5n, 7n],
      ]);
    }
    const whole = await one.budgets.listUsage({});
    expect(whole.rows.map(({ account: one }) => one?.budget).sort()).toEqual([
      "everybody-day",
      "team-month",
      "team-month",
    ]);
  });

  it("are unavailable while the store is, and change nothing then", async () => {
    const { server, one } = await start();
    await server.stop();
    const failure = await one.budgets.listBudgets({}).then(
      () => undefined,
      (thrown: unknown) => ConnectError.from(thrown),
    );
    expect(failure?.code).toBe(Code.Unavailable);
    // What the policy says needs no store.
    const { budgets } = await one.budgets.listBudgets({ withoutSums: true });
    expect(budgets.map(({ name }) => name)).toEqual(["team-month", "everybody-day", "pace"]);
  });

  it("explain what a call finds, and reserve nothing for it", async () => {
    const { one, other, spender } = await start();
    await spender.spend("team-month", account.values, { estimate: usd, cost: 400 * usd });
    await spender.spend("everybody-day", [], { estimate: 3 });
    const headers = { "x-team": "research" };
    const value = { host: "llm.example", headers, model: "gpt-4o" };
    for (const { limits } of [one, other, one]) {
      const { current } = await limits.explain({ request: { case: "http", value } });
      expect(current).toMatchObject({
        isDenied: true,
        service: "llm",
        usage: {
          model: "gpt-4o",
          priceModel: "gpt-*",
          isPriceKnown: true,
          budgets: [
            {
              account,
              unit: "money",
              currency: "USD",
              capacity: BigInt(400 * usd),
              spent: BigInt(400 * usd),
              reserved: 0n,
              estimateSource: "initial",
              isOver: true,
              effect: "refuse",
            },
            { account: { budget: "everybody-day" }, spent: 0n, reserved: 3n, effect: "fits" },
          ],
        },
      });
      expect(current?.usage?.budgets[0]?.retryAfter?.seconds).toBeGreaterThan(0n);
      expect(current?.usage?.budgets[1]?.retryAfter).toBeUndefined();
      expect(current?.marks).toBeUndefined();
    }
  });
});
