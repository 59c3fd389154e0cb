import { create, type DescMethodUnary, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createContextValues, createHandlerContext } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sha256 } from "../../../../../src/app/base/sha256.js";
import type { Principal } from "../../../../../src/core/base/access-list.js";
import { readAuditEntry } from "../../../../../src/core/base/audit-entry.js";
import { accountKey } from "../../../../../src/core/budgets/account-key.js";
import { AccountOrder, BudgetService } from "../../../../../src/gen/headgate/admin/v1/admin_pb.js";
import { budgetService } from "../../../../../src/rpc/admin/budgets/budget-service.js";
import { usageGroupsMax } from "../../../../../src/rpc/admin/budgets/usage-method.js";
import { adminCallKey } from "../../../../../src/rpc/admin/call.js";
import { BudgetRig } from "../../../../support/budget-rig.js";

const everywhere: Principal = { name: "ann", grants: [{ role: "operator", domains: undefined }] };
const reader: Principal = { name: "eve", grants: [{ role: "reader", domains: undefined }] };
/** Sees and changes the budgets of services of one domain. */
const shopOperator: Principal = { name: "bob", grants: [{ role: "operator", domains: ["shop"] }] };
const stranger: Principal = { name: "tim", grants: [{ role: "operator", domains: ["other"] }] };

/** 10^-9 of a dollar. */
const usd = 1_000_000_000;
const method = BudgetService.method;

let rig: BudgetRig;
let api: ReturnType<typeof budgetService>;

beforeEach(() => {
  rig = new BudgetRig();
  api = budgetService(rig.parts);
});

afterEach(() => rig.close());

function contextOf(principal: Principal) {
  const call = { principal, isStillAllowed: async () => true, onRead: () => {}, onEnd: () => {} };
  return createHandlerContext({
    service: BudgetService,
    method: method.listBudgets,
    protocolName: "test",
    requestMethod: "POST",
    url: "http://localhost",
    contextValues: createContextValues().set(adminCallKey, call),
  });
}

/** Asks as over the wire: with defaults for what is left out. */
async function ask<M extends DescMethodUnary>(
  { localName, input, output }: M,
  request: MessageInitShape<M["input"]>,
  principal = everywhere,
) {
  // The names of methods and handlers are the same.
  const handler = api[localName as keyof typeof api] as (...call: unknown[]) => unknown;
  const answer = await handler(create(input, request), contextOf(principal));
  return create(output, answer as MessageInitShape<M["output"]>) as MessageOf<M>;
}

type MessageOf<M extends DescMethodUnary> = ReturnType<typeof create<M["output"]>>;

const failure = (asked: Promise<unknown>) =>
  asked.then(
    () => "answered",
    (thrown: unknown) => {
      const { kind, message } = thrown as { kind?: string; message: string };
      return `${kind}: ${message}`;
    },
  );

const gpt = ["research", "gpt-4o"];
const account = { budget: "team-month", values: gpt };

describe("ListBudgets", () => {
  it("tells the budgets of the policy, with sums over their accounts", async () => {
    await rig.spend("team-month", gpt, { estimate: usd, cost: 350 * usd });
    await rig.spend("team-month", gpt, { estimate: 20 * usd });
    await rig.spend("team-month", ["sales", "gpt-4o"], { estimate: usd, cost: 100 * usd });
    const { budgets, policyVersion } = await ask(method.listBudgets, {}, reader);
    expect(policyVersion).toBe("v1");
    expect(budgets.map(({ name, domain, unit }) => [name, domain, unit])).toEqual([
      ["team-month", "shop", "money"],
      ["everybody-day", "shop", "tokens"],
      ["pace", "", "calls"],
    ]);
    expect(budgets[0]).toMatchObject({
      currency: "USD",
      decimals: 9,
      amount: 100_000_000_000n,
      per: ["header x-team", "model"],
      period: "month",
      timeZone: "Europe/Berlin",
      warnAt: 0.8,
      over: "refuse",
      sums: {
        accountCount: 2n,
        spent: 450_000_000_000n,
        reserved: 20_000_000_000n,
        capacity: 500_000_000_000n,
        warnedCount: 1n,
        overCount: 1n,
        projectedOverCount: 1n,
        usedRatioMax: 1,
      },
    });
    const { windowStart, windowEnd } = budgets[0] ?? {};
    expect(
      [windowStart, windowEnd].map((time) => time && timestampDate(time).toISOString()),
    ).toEqual(["2023-10-31T23:00:00.000Z", "2023-11-30T23:00:00.000Z"]);
    // 450 of 30 days in 13.97.
    expect(Number(budgets[0]?.sums?.projected) / usd).toBeCloseTo(450 / (13.968 / 30), 0);
    expect(budgets[2]?.windowEnd).toBeUndefined();
    expect(budgets[2]?.drainPeriod?.seconds).toBe(60n);
    expect(budgets[2]?.sums?.projected).toBeUndefined();
  });

  it("keeps sums for some seconds, and asks nobody without them", async () => {
    const spentNow = async () => {
      const { budgets } = await ask(method.listBudgets, { budget: "team-month" });
      return budgets[0]?.sums?.spent;
    };
    expect(await spentNow()).toBe(0n);
    await rig.spend("team-month", gpt, { estimate: 1, cost: 7 });
    expect(await spentNow()).toBe(0n);
    rig.clock.advance(5_000);
    expect(await spentNow()).toBe(7n);
    const { budgets } = await ask(method.listBudgets, { withoutSums: true });
    expect(budgets.every(({ sums }) => sums === undefined)).toBe(true);
  });

  it("shows the budgets of a domain to those who may see it, and others nothing", async () => {
    const names = async (principal: Principal) => {
      const { budgets } = await ask(method.listBudgets, {}, principal);
      return budgets.map(({ name }) => name);
    };
    expect(await names(shopOperator)).toEqual(["team-month", "everybody-day"]);
    expect(await names(stranger)).toEqual([]);
    const hidden = failure(ask(method.getBudgetAccount, { account }, stranger));
    expect(await hidden).toBe("notFound: unknown budget");
    const typo = failure(ask(method.listBudgets, { budget: "team-mont" }));
    expect(await typo).toBe('notFound: unknown budget; did you mean "team-month"?');
  });
});

describe("ListBudgetAccounts", () => {
  it("has the top spenders first, page by page", async () => {
    for (let i = 0; i < 25; i += 1) {
      await rig.spend("team-month", [`t${i}`, "m"], { estimate: 1, cost: (i % 10) * usd });
    }
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await ask(method.listBudgetAccounts, {
        budget: "team-month",
        pageSize: 7,
        pageToken,
      });
      seen.push(...page.accounts.map(({ account: one }) => one?.values[0] ?? ""));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toHaveLength(25);
    expect(new Set(seen).size).toBe(25);
    const spent = seen.map((team) => Number(team.slice(1)) % 10);
    expect(spent).toEqual([...spent].sort((a, b) => b - a));
  });

  it("filters by values and used ratio, and lists in the order of the store", async () => {
    await rig.spend("team-month", gpt, { estimate: 1, cost: 390 * usd });
    await rig.spend("team-month", ["sales", "gpt-4o"], { estimate: 1, cost: 99 * usd });
    await rig.spend("team-month", ["sales", "gpt-5"], { estimate: 1, cost: usd });
    const teams = async (request: MessageInitShape<typeof method.listBudgetAccounts.input>) => {
      const { accounts } = await ask(method.listBudgetAccounts, {
        budget: "team-month",
        ...request,
      });
      return accounts.map(({ account: one }) => one?.values.join(" "));
    };
    const { USED_RATIO, NONE } = AccountOrder;
    expect(await teams({})).toEqual(["research gpt-4o", "sales gpt-4o", "sales gpt-5"]);
    expect(await teams({ order: USED_RATIO, usedRatioMin: 0.5 })).toEqual([
      "sales gpt-4o",
      "research gpt-4o",
    ]);
    expect(await teams({ values: ["s*", "*"] })).toEqual(["sales gpt-4o", "sales gpt-5"]);
    expect((await teams({ order: NONE })).sort()).toHaveLength(3);
    const wrong = failure(ask(method.listBudgetAccounts, { budget: "team-month", values: ["s*"] }));
    expect(await wrong).toBe(
      "invalid: values: the budget needs one for each of its per: header x-team, model",
    );
    const token = failure(
      ask(method.listBudgetAccounts, { budget: "team-month", pageToken: "pxyz" }),
    );
    expect(await token).toMatch(/^invalid: page_token/);
    const many = { budget: "x", pageSize: 1_001, usedRatioMin: -1, order: 9 };
    expect(await failure(ask(method.listBudgetAccounts, many))).toBe(
      "invalid: page_size: must be from 0 to 1000; order: unknown order; " +
        "used_ratio_min: must be at least 0",
    );
  });
});

describe("GetBudgetAccount", () => {
  it("projects the end of the window, and when the capacity is spent", async () => {
    await rig.spend("team-month", gpt, { estimate: 1, cost: 300 * usd });
    const answer = await ask(method.getBudgetAccount, { account }, shopOperator);
    // Since 2023-10-31T23:00:00Z.
    const elapsed = 1_700_000_000 - 1_698_793_200;
    const { projected, exhaustedAt, capacity, usedRatio } = answer.account ?? {};
    expect([capacity, usedRatio]).toEqual([400_000_000_000n, 0.75]);
    expect(Number(projected)).toBe(Math.round(300 * usd * (2_592_000 / elapsed)));
    expect(exhaustedAt && timestampDate(exhaustedAt).getTime()).toBeCloseTo(
      1_700_000_000_000 + (elapsed * 1_000) / 3,
      -1,
    );
  });

  it("knows accounts that nobody has used, and long values by their digests", async () => {
    const unused = await ask(method.getBudgetAccount, { account });
    expect(unused.account).toMatchObject({ spent: 0n, capacity: 400_000_000_000n });
    const long = "x".repeat(500);
    await rig.spend("team-month", [long, "m"], { estimate: 1, cost: 5 });
    const { accounts } = await ask(method.listBudgetAccounts, { budget: "team-month" });
    const shown = accounts[0]?.account?.values ?? [];
    expect(shown[0]).toBe(`${"x".repeat(32)}…#${sha256(long)}`);
    for (const values of [shown, [long, "m"]]) {
      const selector = { budget: "team-month", values };
      const answer = await ask(method.getBudgetAccount, { account: selector });
      expect(answer.account?.spent).toBe(5n);
    }
  });
});

describe("top-ups", () => {
  const added = { account, amount: BigInt(50 * usd), reason: "launch" };

  it("add to a capacity until the window ends, with an audit entry", async () => {
    const answer = await ask(method.topUpBudget, added, shopOperator);
    expect(answer.account).toMatchObject({ capacity: 450_000_000_000n, toppedUp: 50_000_000_000n });
    const { topUp } = answer;
    expect(topUp).toMatchObject({ author: "bob", reason: "launch", version: expect.any(BigInt) });
    const until = topUp?.expiresAt && timestampDate(topUp.expiresAt).toISOString();
    expect(until).toBe("2023-11-30T23:00:00.000Z");
    const [entry] = await rig.records.audit(Number.POSITIVE_INFINITY, 10);
    expect(entry && readAuditEntry(entry.value)).toMatchObject({
      author: "bob",
      action: "TopUpBudget",
      subject: "team-month",
      domain: "shop",
      reason: "launch",
      before: "",
      after: expect.stringContaining('"amount":50000000000'),
    });
    const soon = timestampFromMs(1_700_000_010_000);
    const short = await ask(method.topUpBudget, { ...added, expiresAt: soon });
    expect(short.account?.toppedUp).toBe(100_000_000_000n);
    rig.clock.advance(10_000);
    const later = await ask(method.getBudgetAccount, { account });
    expect([later.account?.toppedUp, later.topUps.length]).toEqual([50_000_000_000n, 1]);
  });

  it("are made once for an id, are for patterns too, and end before their time", async () => {
    const once = { ...added, id: "case-42" };
    await ask(method.topUpBudget, once);
    const again = await ask(method.topUpBudget, once);
    expect(again.account?.toppedUp).toBe(50_000_000_000n);
    const other = failure(ask(method.topUpBudget, { ...once, amount: 1n }));
    expect(await other).toBe("conflict: id: it is another top-up's");
    const everybody = { budget: "team-month", values: ["*", "gpt-4o"] };
    await ask(method.topUpBudget, { ...added, account: everybody });
    const both = await ask(method.getBudgetAccount, { account });
    expect([both.account?.toppedUp, both.topUps.length]).toEqual([100_000_000_000n, 2]);
    const first = await ask(method.listTopUps, { pageSize: 1 });
    const rest = await ask(method.listTopUps, { pageSize: 1, pageToken: first.nextPageToken });
    expect([first.topUps.length, rest.topUps.length, rest.nextPageToken]).toEqual([1, 1, ""]);
    const gone = { budget: "team-month", id: "case-42", reason: "over" };
    expect(await failure(ask(method.deleteTopUp, gone, reader))).toMatch(/^forbidden/);
    await ask(method.deleteTopUp, gone);
    const after = await ask(method.getBudgetAccount, { account });
    expect(after.account?.toppedUp).toBe(50_000_000_000n);
    expect(await failure(ask(method.deleteTopUp, gone))).toMatch(/^notFound: unknown top-up/);
    expect((await ask(method.listTopUps, {}, stranger)).topUps).toEqual([]);
  });

  it("are refused to readers, and where a request is out of its bounds", async () => {
    const forbidden = "forbidden: this needs the role operator in this domain";
    const shopReader: Principal = { name: "r", grants: [{ role: "reader", domains: ["shop"] }] };
    expect(await failure(ask(method.topUpBudget, added, shopReader))).toBe(forbidden);
    const wrong = {
      account: { budget: "", values: [] },
      amount: 0n,
      expiresAt: timestampFromMs(1_600_000_000_000),
      id: "NO",
    };
    expect(await failure(ask(method.topUpBudget, wrong))).toBe(
      "invalid: account.budget: required; " +
        "amount: must be a whole number from 1 to 4503599627370496; " +
        "expires_at: it is in the past; reason: required; " +
        "id: must be 1 to 64 lower-case letters, digits and hyphens",
    );
    const secret = { budget: "team-month", values: ["s3cret"] };
    const text = await failure(ask(method.topUpBudget, { ...added, account: secret }));
    expect(text).not.toContain("s3cret");
    expect(await rig.records.audit(Number.POSITIVE_INFINITY, 10)).toEqual([]);
  });
});

describe("RefundBudget", () => {
  it("gives back at most what was spent, once for an id, with an audit entry before", async () => {
    await rig.spend("team-month", gpt, { estimate: 1, cost: 30 * usd });
    const asked = { account, amount: BigInt(20 * usd), reason: "outage", id: "r-1" };
    const first = await ask(method.refundBudget, asked, shopOperator);
    expect([first.refunded, first.account?.spent]).toEqual([20_000_000_000n, 10_000_000_000n]);
    const again = await ask(method.refundBudget, asked, shopOperator);
    expect([again.refunded, again.account?.spent]).toEqual([20_000_000_000n, 10_000_000_000n]);
    const rest = await ask(method.refundBudget, { ...asked, id: "" });
    expect([rest.refunded, rest.account?.spent]).toEqual([10_000_000_000n, 0n]);
    const entries = await rig.records.audit(Number.POSITIVE_INFINITY, 10);
    expect(entries.map(({ value }) => value["action"])).toEqual(Array(3).fill("RefundBudget"));
    expect(await failure(ask(method.refundBudget, asked, reader))).toMatch(/^forbidden/);
  });
});

describe("ListUsage", () => {
  const key = (budget: string, ...values: string[]) => accountKey(budget, values, sha256);
  const row = (model: string, cost: number, team = "research") => ({
    service: "llm",
    account: key("team-month", team, model),
    model,
    callCount: 2,
    counts: { inputTokens: 10, outputTokens: 3 },
    cost,
  });

  beforeEach(async () => {
    await rig.use("2023-11-13", row("gpt-4o", 5), row("gpt-5", 50, "sales"));
    await rig.use(
      "2023-11-14",
      row("gpt-4o", 7),
      { ...row("gpt-4o", 7), account: key("everybody-day") },
      { ...row("gpt-4o", 1), service: "gone" },
    );
  });

  it("exports rows day by day", async () => {
    const days = { fromDay: "2023-11-13", toDay: "2023-11-14" };
    const first = await ask(method.listUsage, days);
    expect(first.rows).toMatchObject([
      { day: "2023-11-13", service: "llm", account, model: "gpt-4o", cost: 5n, inputTokens: 10n },
      { day: "2023-11-13", model: "gpt-5", callCount: 2n },
    ]);
    expect([first.currency, first.decimals]).toEqual(["USD", 9]);
    const second = await ask(method.listUsage, { ...days, pageToken: first.nextPageToken });
    expect(second.rows.map(({ day, account: of }) => [day, of?.budget])).toEqual([
      ["2023-11-14", "team-month"],
      ["2023-11-14", "everybody-day"],
      ["2023-11-14", "team-month"],
    ]);
    expect(second.nextPageToken).toBe("");
    const today = await ask(method.listUsage, { budget: "everybody-day" });
    expect(today.rows).toHaveLength(1);
    const domain = await ask(method.listUsage, {}, shopOperator);
    expect(domain.rows.map(({ service }) => service)).toEqual(["llm", "llm"]);
    expect((await ask(method.listUsage, {}, stranger)).rows).toEqual([]);
  });

  it("sums rows by what is asked for, the dearest first", async () => {
    const asked = { budget: "team-month", fromDay: "2023-11-13", toDay: "2023-11-14" };
    const models = await ask(method.listUsage, { ...asked, groupBy: ["model"] });
    expect(models.rows.map(({ model, cost, callCount }) => [model, cost, callCount])).toEqual([
      ["gpt-5", 50n, 2n],
      ["gpt-4o", 13n, 6n],
    ]);
    const days = await ask(method.listUsage, { ...asked, groupBy: ["day", "service"] });
    expect(days.rows.map(({ day, service, model, cost }) => [day, service, model, cost])).toEqual([
      ["2023-11-13", "llm", "", 55n],
      ["2023-11-14", "llm", "", 7n],
      ["2023-11-14", "gone", "", 1n],
    ]);
  });

  it("sums what is beyond the bound in one row", async () => {
    for (let from = 0; from <= usageGroupsMax; from += 500) {
      const rows = Array.from({ length: 500 }, (_, i) => row(`m${from + i}`, 1));
      await rig.use("2023-11-12", ...rows);
    }
    const days = { fromDay: "2023-11-12", toDay: "2023-11-12" };
    const { rows } = await ask(method.listUsage, {
      budget: "team-month",
      ...days,
      groupBy: ["model"],
    });
    expect(rows).toHaveLength(usageGroupsMax + 1);
    expect(rows[0]).toMatchObject({ isRest: true, cost: 500n, model: "" });
  });

  it("refuses days that are none, too many, and sums without a budget", async () => {
    const wrong = { fromDay: "2023-02-30", toDay: "today", groupBy: ["model", "user"] };
    expect(await failure(ask(method.listUsage, wrong))).toBe(
      "invalid: to_day: must be a day, such as 2026-11-27; " +
        "from_day: must be a day, such as 2026-11-27; " +
        "group_by: must be of day, service, account, model; " +
        "budget: required with group_by: a call has a row for each",
    );
    const long = { fromDay: "2023-01-01", toDay: "2023-11-14" };
    expect(await failure(ask(method.listUsage, long))).toBe(
      "invalid: to_day: must be 0 to 91 days after from_day",
    );
  });
});
