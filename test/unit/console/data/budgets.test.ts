import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import {
  accountOfRoute,
  accountRoute,
  dayBefore,
  formatAccount,
  formatExhausted,
  formatProjected,
  formatTerms,
  judgeAccount,
  judgeBudget,
  usedParts,
} from "../../../../src/console/data/budgets.js";
import { parseRoute } from "../../../../src/console/data/route.js";
import {
  AccountSelectorSchema,
  BudgetAccountSchema,
  BudgetSchema,
} from "../../../../src/gen/headgate/admin/v1/admin_pb.js";

const budget = (fields: MessageInitShape<typeof BudgetSchema> = {}) =>
  create(BudgetSchema, {
    unit: "money",
    currency: "USD",
    decimals: 9,
    amount: 500_000_000_000n,
    period: "month",
    timeZone: "Europe/Berlin",
    ...fields,
  });

const account = (fields: MessageInitShape<typeof BudgetAccountSchema> = {}) =>
  create(BudgetAccountSchema, { capacity: 100n, ...fields });

describe("a budget", () => {
  it("is judged by its worst account", () => {
    const judged = (sums: NonNullable<MessageInitShape<typeof BudgetSchema>["sums"]>) =>
      judgeBudget(budget({ sums }));
    expect(judged({})).toEqual({ tone: "good", word: "in budget" });
    expect(judged({ projectedOverCount: 3n })).toMatchObject({ tone: "notice" });
    expect(judged({ projectedOverCount: 3n, warnedCount: 2n })).toMatchObject({ tone: "warn" });
    expect(judged({ overCount: 1n, warnedCount: 2n })).toEqual({
      tone: "bad",
      word: "1 exhausted",
    });
    expect(judgeBudget(budget({ sums: { overCount: 1n }, isDryRun: true })).tone).toBe("warn");
  });

  it("has its terms in a line", () => {
    expect(formatTerms(budget())).toBe("500.00 USD a month in Europe/Berlin");
    const pace = { unit: "calls", amount: 100n, period: "", drainPeriod: { seconds: 60n } };
    expect(formatTerms(budget(pace))).toBe("100 calls in 1m");
  });
});

describe("an account", () => {
  it("is exhausted, near its end, on its way there, or in budget", () => {
    const exhaustedAt = timestampFromMs(1_795_262_400_000);
    const warning = budget({ warnAt: 0.8 });
    expect(judgeAccount(account({ spent: 60n, reserved: 40n }), warning).tone).toBe("bad");
    expect(judgeAccount(account({ spent: 80n, usedRatio: 0.8 }), warning).tone).toBe("warn");
    expect(judgeAccount(account({ usedRatio: 0.9 }), budget()).tone).toBe("good");
    const soon = account({ exhaustedAt });
    expect(judgeAccount(soon, budget()).tone).toBe("notice");
    expect([formatExhausted(soon), formatExhausted(account())]).toEqual(["2026-11-21", ""]);
  });

  it("is drawn in parts of its capacity, also without one", () => {
    const parts = usedParts(account({ spent: 50n, reserved: 25n }));
    expect(parts).toEqual({ spent: 0.5, reserved: 0.25, total: 0.75 });
    expect(usedParts(account({ spent: 5n, capacity: 0n })).total).toBe(0);
    const projected = { projected: 466_850_931_895n, capacity: 600_000_000_000n };
    expect(formatProjected(projected, budget())).toBe("466.85 USD, 78 %");
    expect(formatProjected({ capacity: 1n }, budget())).toBe("-");
  });

  it("has a page of its own, whatever its values are", () => {
    for (const values of [[], ["research", "gpt-4o"], ["", ""], ["=a/b?c", "\u202e", "%2F"]]) {
      const selector = create(AccountSelectorSchema, { budget: "team", values });
      const { path } = parseRoute(accountRoute(selector));
      expect(accountOfRoute(path)).toEqual({ budget: "team", values });
    }
    const odd = create(AccountSelectorSchema, { values: ["", "a\u202e"] });
    expect(formatAccount(odd)).toBe("(none), a\\u{202e}");
    expect(formatAccount(undefined)).toBe("-");
  });
});

it("counts days back in UTC", () => {
  expect(dayBefore(1_700_000_000_000, 0)).toBe("2023-11-14");
  expect(dayBefore(1_700_000_000_000, 14)).toBe("2023-10-31");
});
