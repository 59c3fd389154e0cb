import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type {
  ListUsageRequest,
  RefundBudgetRequest,
  TopUpBudgetRequest,
} from "../../../../src/gen/headgate/admin/v1/admin_pb.js";
import { busyScript } from "../../../support/admin-script.js";
import { AdminServer } from "../../../support/admin-server.js";
import { captureCli } from "../../../support/cli.js";
import { FakeTerminal } from "../../../support/fake-terminal.js";

let server: AdminServer;
const topUps: TopUpBudgetRequest[] = [];
const refunds: RefundBudgetRequest[] = [];
const exports: ListUsageRequest[] = [];

beforeAll(async () => {
  const { budgets } = busyScript;
  server = await AdminServer.start({
    ...busyScript,
    budgets: {
      ...budgets,
      topUpBudget: (request) => {
        topUps.push(request);
        return budgets.topUpBudget(request);
      },
      refundBudget: (request) => {
        refunds.push(request);
        return budgets.refundBudget(request);
      },
      listUsage: (request) => {
        exports.push(request);
        return budgets.listUsage(request);
      },
    },
  });
});

afterAll(() => server.close());

function run(words: readonly string[], terminal = new FakeTerminal({ columns: 120 })) {
  const env = { NO_COLOR: "1", HEADGATE_ADMIN_URL: server.url };
  return captureCli(["budgets", ...words], { env, terminal });
}

/** A table whose lines are cut at their ends, as editors do. */
function lines(text: string): readonly string[] {
  return text.split("\n").map((line) => line.trimEnd());
}

describe("headgate budgets", () => {
  it("has a row for each budget, with exact amounts", async () => {
    const { code, out } = await run([], new FakeTerminal({ columns: 140 }));
    expect([code, ...lines(out)]).toEqual([
      0,
      "budget            used                          spent          capacity     projected  accounts",
      "team-month        ████▒░░░░░  45.7 %  1,250.00575 USD      3,000.00 USD  1,875.01 USD  1,234, 1 over, 2 warned, 3 will be over",
      "everybody-minute  █░░░░░░░░░  <0.1 %        12 tokens  1,000,000 tokens             -  1",
    ]);
  });

  it("shows a budget and its top spenders, in which no value acts on a terminal", async () => {
    const { code, out } = await run(["show", "team-month"]);
    expect(code).toBe(0);
    for (const text of [
      /amount +500.00 USD a month in Europe\/Berlin/,
      /per +header x-team, model/,
      /window +2026-11-01T00:00:00Z to 2026-12-01T00:00:00Z/,
      /fullest account +102.0 %/,
      /projected +1,875.01 USD at the end/,
      /research, gpt-4o .* 450.00575 USD +600.00 USD +675.00 USD +2026-11-27/,
      /malloryma/,
    ]) {
      expect(out).toMatch(text);
    }
    expect(out).not.toMatch(/[^\n\P{Cc}]|\p{Cf}/u);
  });

  it("shows an account and its top-ups", async () => {
    const { code, out } = await run(["account", "team-month", "research", "gpt-4o"]);
    expect(code).toBe(0);
    for (const text of [
      /reserved +12.00 USD/,
      /topped up +100.00 USD/,
      /exhausted +2026-11-27T00:00:00Z/,
      /t-1f2e3d4c +team-month research gpt-4o +100.00 USD +2026-12-01T00:00:00Z +ann +launch week/,
    ]) {
      expect(out).toMatch(text);
    }
    const { out: list } = await run(["top-ups"]);
    expect(list).toMatch(/t-1f2e3d4c +team-month research gpt-4o +100.00 USD/);
  });

  it("sums what was used", async () => {
    exports.length = 0;
    const { code, out } = await run(["usage", "team-month", "--by", "account, model"]);
    expect(code).toBe(0);
    expect(out).toMatch(/gpt-4o +1,200 +1,500,000 +20 +90,000 +0.00575 USD/);
    expect(out).toMatch(/\(all others\) +9/);
    expect(exports[0]?.groupBy).toEqual(["account", "model"]);
    expect(exports[0]?.fromDay).toMatch(/^\d{4}-\d\d-\d\d$/);
  });
});

describe("headgate budgets top-up and refund", () => {
  it("take an amount in the unit of the budget, exactly, and ask first", async () => {
    topUps.length = 0;
    const words = ["team-month", "research", "gpt-4o", "--reason", "launch"];
    const terminal = new FakeTerminal({ columns: 120, answers: ["y"] });
    const { code, out } = await run(["top-up", ...words, "--amount", "0.1 USD"], terminal);
    expect(code).toBe(0);
    expect(terminal.questions).toEqual(["Add 0.10 USD to team-month research gpt-4o? [y/N] "]);
    expect(out).toContain(
      "Added 0.10 USD to team-month research gpt-4o until 2026-12-01T00:00:00Z",
    );
    expect(topUps).toMatchObject([
      {
        account: { budget: "team-month", values: ["research", "gpt-4o"] },
        amount: 100_000_000n,
        reason: "launch",
      },
    ]);
    expect(topUps[0]?.expiresAt).toBeUndefined();
    const end = ["--until", "2026-11-29", "--id", "case-42"];
    await run(["top-up", ...words, "--amount", "1,000", ...end, "--yes"]);
    expect(topUps[1]).toMatchObject({ amount: 1_000_000_000_000n, id: "case-42" });
    expect(topUps[1]?.expiresAt?.seconds).toBe(1_795_910_400n);
    const refund = await run(["refund", ...words, "--amount", "12.50", "--yes"]);
    expect(refunds).toMatchObject([{ amount: 12_500_000_000n }]);
    expect(refund.out).toContain("Gave 12.499999999 USD back to team-month research gpt-4o.");
  });

  it("change nothing without a yes, and for what is no amount of the budget", async () => {
    topUps.length = 0;
    const words = ["top-up", "team-month", "research", "gpt-4o", "--reason", "launch"];
    const terminal = new FakeTerminal({ columns: 120, answers: ["n"] });
    expect((await run([...words, "--amount", "1"], terminal)).code).toBe(1);
    for (const amount of ["0", "-1", "1 EUR", "0.0000000001", "4503600", "1e3"]) {
      const { code, err } = await run([...words, "--amount", amount, "--yes"]);
      expect([code, err]).toEqual([2, expect.stringContaining("--amount must be above 0")]);
    }
    expect(topUps).toEqual([]);
    const removed = await run(["delete-top-up", "team-month", "t-1", "--reason", "x", "--yes"]);
    expect([removed.code, removed.out]).toEqual([0, "Removed t-1."]);
  });
});

describe("headgate budgets export", () => {
  it("writes CSV in which no caller's text is a formula, a call for each day", async () => {
    exports.length = 0;
    const range = ["--from", "2026-11-26", "--to", "2026-11-27"];
    const { code, out } = await run(["export", "team-month", ...range]);
    const others = [
      ',,team-month,\'@a,"\'=cmd|""x""",3,0,0,0,0,0,0,0,0,0.00,USD',
      ",,,(all others),,9,0,0,0,0,0,0,0,0,0.00,USD",
    ];
    const day = (text: string) =>
      `${text},llm,team-month,research/gpt-4o,gpt-4o,1200,1500000,20,0,90000,0,0,0,0,0.00575,USD`;
    expect([code, ...lines(out.trim())]).toEqual([
      0,
      "day,service,budget,account,model,calls,input_tokens,cached_tokens,cache_write_tokens," +
        "output_tokens,reasoning_tokens,response_bytes,duration_ms,custom_units,cost,currency",
      day("2026-11-26"),
      ...others,
      day("2026-11-27"),
      ...others,
    ]);
    expect(exports.map(({ fromDay, toDay, budget }) => [fromDay, toDay, budget])).toEqual([
      ["2026-11-26", "2026-11-26", "team-month"],
      ["2026-11-27", "2026-11-27", "team-month"],
    ]);
  });

  it("writes JSON with whole numbers, and refuses days that are none", async () => {
    const { out } = await run(["export", "-o", "json", "--from", "2026-11-27"]);
    expect(JSON.parse(out)).toMatchObject({ currency: "USD", decimals: 9 });
    const wrong = [
      ["--from", "yesterday"],
      ["--from", "2026-11-27", "--to", "2026-11-26"],
    ];
    for (const range of wrong) expect((await run(["export", ...range])).code).toBe(2);
  });
});
