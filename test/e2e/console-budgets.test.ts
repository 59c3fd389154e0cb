import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { adminClients, startAdminApp } from "../support/admin.js";
import { budgetsText, policyOfText } from "../support/budget-rig.js";
import { ConsolePage, phone } from "../support/console-page.js";
import { tokens } from "../support/console-rig.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { SpendingReplica } from "../support/redis-budgets.js";
import { startBrowser, type Theme, wide } from "../support/site.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");

/** 10^-9 of a dollar. */
const usd = 1_000_000_000;
const wicked = "<img src=x onerror=alert(1)>\u202e=cmd";
const research = ["research", "gpt-4o"];

let open: (who: keyof typeof tokens, theme?: Theme) => Promise<ConsolePage>;
let api: ReturnType<typeof adminClients>;

beforeAll(async () => {
  const [redis, browser] = await Promise.all([startRedis(stage), startBrowser(stage)]);
  const hash = (token: string): string => createHash("sha256").update(token).digest("hex");
  const access = join(stage.folder, "access");
  const lines = [
    `operator * token-sha256:${hash(tokens.operator)} olga`,
    `reader * token-sha256:${hash(tokens.reader)} rita`,
  ];
  await writeFile(access, `${lines.join("\n")}\n`);
  const { port } = await startAdminApp(stage, budgetsText, {
    ...redisEnv(redis.port),
    HEADGATE_ADMIN_ACCESS: access,
    HEADGATE_ADMIN_CALLS_PER_SECOND: "500",
  });
  api = adminClients(port, { token: tokens.operator });
  const spender = await SpendingReplica.open(stage, redis.port, policyOfText(budgetsText));
  await spender.spend("team-month", research, { estimate: usd, cost: 300.00575 * usd });
  await spender.spend("team-month", research, { estimate: 40 * usd });
  await spender.spend("team-month", ["sales", "gpt-4o"], { estimate: usd, cost: 120 * usd });
  await spender.spend("team-month", [wicked, ""], { estimate: usd, cost: usd });
  await spender.spend("everybody-day", [], { estimate: 10, cost: 123_456 });
  const row = { service: "llm", budget: "team-month", values: research, callCount: 1_234 };
  const counts = { inputTokens: 1_500_000, cachedTokens: 20_000, outputTokens: 90_000 };
  await spender.use(
    { ...row, model: "gpt-4o", counts, cost: 300.00575 * usd },
    { ...row, model: wicked, counts, cost: 100 * usd },
  );
  open = async (who, theme) => {
    const page = await ConsolePage.open(browser, `http://127.0.0.1:${port}`, theme);
    await page.signIn(tokens[who]);
    return page;
  };
});

const views = [
  ["budgets", "#/budgets", "421.00575 USD"],
  ["budget", "#/budget/team-month", "Usage by model"],
  ["account", "#/account/team-month/=research/=gpt-4o", "300.00575 USD"],
] as const;

describe("budgets in the console", () => {
  it.each(["light", "dark"] as const)("can be read by everybody, %s", async (theme) => {
    const reader = await open("reader", theme);
    for (const [name, hash, text] of views) {
      for (const [size, viewport] of Object.entries({ wide, phone })) {
        await reader.page.setViewportSize(viewport);
        await reader.show(hash);
        await reader.see(text);
        if (name === "budget") await reader.see(/1,234/);
        expect(await reader.judge(), name).toEqual([]);
        expect(await reader.overflow(), `${name} ${size}`).toBe(0);
        await reader.picture(`${name}-${size}-${theme}`);
      }
    }
    expect(await reader.page.locator("text=Top up …").count()).toBe(0);
    expect(reader.troubles).toEqual([]);
  });

  it("lead from a budget to its top spenders, whatever they are called", async () => {
    const reader = await open("reader");
    await reader.show("#/budgets");
    await reader.page.click("a.card:has-text('team-month')");
    await reader.see(/research, gpt-4o.*sales, gpt-4o/s);
    await reader.see("1 exhausted");
    await reader.page.click("text=By used part");
    await reader.see(/sales, gpt-4o.*research, gpt-4o/s);
    await reader.page.click("td:has-text('onerror')");
    await reader.see("as the policy says");
    expect(reader.troubles).toEqual([]);
  });

  it("are topped up and refunded by operators, who say why", async () => {
    const operator = await open("operator");
    const { page } = operator;
    await operator.show("#/account/team-month/=research/=gpt-4o");
    await page.click("text=Top up …");
    await page.fill("dialog label:has-text('Amount') input", "0.5 EUR");
    await operator.see("Complete the form to see it.");
    await page.fill("dialog label:has-text('Amount') input", "50.25");
    await page.fill("dialog label:has-text('For') input", "3d");
    await page.fill("dialog label:has-text('Reason') input", "launch week");
    await operator.see(/400.00 USD.*450.25 USD/s);
    await operator.see(
      "headgate budgets top-up team-month research gpt-4o --amount 50.25 --for 3d " +
        "--reason 'launch week'",
    );
    await operator.picture("account-top-up");
    expect(await operator.judge()).toEqual([]);
    await page.click("dialog button:text-is('Top up')");
    await operator.see("on all replicas within a second");
    await page.click("dialog >> text=Done");
    await operator.see("450.25 USD");
    await page.click("text=Refund …");
    await page.fill("dialog label:has-text('Amount') input", "0.00575");
    await page.fill("dialog label:has-text('Reason') input", "outage");
    await page.click("dialog button:text-is('Refund')");
    await operator.see("Gave back 0.00575 USD.");
    await page.click("dialog >> text=Done");
    const account = { budget: "team-month", values: research };
    const known = await api.budgets.getBudgetAccount({ account });
    expect(known.account).toMatchObject({
      spent: BigInt(300 * usd),
      capacity: BigInt(450.25 * usd),
    });
    await page.click("text=Remove …");
    await page.fill("dialog label:has-text('Reason') input", "it is over");
    await page.click("dialog button:text-is('Remove')");
    await operator.see("Removed, on all replicas");
    await waitFor("it is gone", async () => {
      return (await api.budgets.listTopUps({})).topUps.length === 0;
    });
    const { entries } = await api.fleet.listAudit({});
    expect(entries.map(({ action, author, reason }) => [action, author, reason])).toEqual([
      ["DeleteTopUp", "olga", "it is over"],
      ["RefundBudget", "olga", "outage"],
      ["TopUpBudget", "olga", "launch week"],
    ]);
    expect(operator.troubles).toEqual([]);
  });
});
