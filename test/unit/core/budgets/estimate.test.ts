import { describe, expect, it } from "vitest";
import type { BudgetUnit } from "../../../../src/core/budgets/budget-cost.js";
import {
  type EntryQuestion,
  estimateEntry,
  estimateUsage,
  learnedCountsOf,
  usedBy,
} from "../../../../src/core/budgets/estimate.js";
import type { LearnedCalls, LearnedCount } from "../../../../src/core/budgets/learned-usage.js";
import type { ModelPrice } from "../../../../src/core/budgets/price.js";
import { type CallFacts, type Usage, usageCountMax } from "../../../../src/core/budgets/usage.js";

const settings = { quantile: 0.9, initial: 500 };

/** Earlier calls that used the same each time. */
function earlier(
  counts: Partial<Record<LearnedCount, number>> = {},
  perByte = { inputPerByte: 0.25, outputPerByte: 0.25 },
): Omit<LearnedCalls, "learn"> {
  return { quantile: (count, ratio) => (ratio === 0.9 ? counts[count] : undefined), ...perByte };
}

function estimate(facts: Partial<CallFacts>, learned = earlier()) {
  return estimateUsage({ model: "m", ...facts }, learned, settings);
}

describe("estimateUsage()", () => {
  it("takes the initial estimate of what nothing is known of", () => {
    const { usage, sources } = estimate({});
    expect(new Set(Object.values(usage))).toEqual(new Set([500]));
    expect(new Set(Object.values(sources))).toEqual(new Set(["initial"]));
  });

  it("goes by what the request says first, and by earlier calls else", () => {
    const learned = earlier({ inputTokens: 7, outputTokens: 216, durationMs: 900 });
    const { usage, sources } = estimate({ requestBytes: 4_000, outputTokensMax: 50 }, learned);
    expect(usage).toMatchObject({ inputTokens: 1_000, outputTokens: 50, durationMs: 900 });
    expect(sources).toEqual({
      inputTokens: "requestBytes",
      outputTokens: "declared",
      responseBytes: "initial",
      durationMs: "learned",
      customUnits: "initial",
    });
    expect(estimate({}, learned).usage).toMatchObject({ inputTokens: 7, outputTokens: 216 });
  });

  it("takes zeros for what they say", () => {
    const { usage, sources } = estimate(
      { requestBytes: 0, outputTokensMax: 0 },
      earlier({ customUnits: 0 }),
    );
    expect(usage).toMatchObject({ inputTokens: 0, outputTokens: 0, customUnits: 0 });
    expect(sources).toMatchObject({ outputTokens: "declared", customUnits: "learned" });
  });

  it("rounds tokens up, by the learned tokens of a byte", () => {
    const learned = earlier({}, { inputPerByte: 0.3, outputPerByte: 9 });
    expect(estimate({ requestBytes: 5 }, learned).usage.inputTokens).toBe(2);
    expect(estimate({ requestBytes: 100 }, learned).usage.inputTokens).toBe(30);
  });

  it("stays in the range of counts, whatever a request says", () => {
    const largest = { requestBytes: Number.MAX_SAFE_INTEGER, outputTokensMax: Number.MAX_VALUE };
    const learned = earlier({ customUnits: 2 * usageCountMax });
    expect(estimate(largest, learned).usage).toMatchObject({
      inputTokens: usageCountMax,
      outputTokens: usageCountMax,
      customUnits: usageCountMax,
    });
  });
});

const price: ModelPrice = {
  model: "m",
  validFromMs: undefined,
  tiers: [{ aboveInputTokens: 0, input: 1_000_000, cached: 0, cacheWrite: 0, output: 2_000_000 }],
  call: 3,
};

function entry(fields: Partial<EntryQuestion> & { facts?: Partial<CallFacts> } = {}) {
  const { facts = {}, ...question } = fields;
  const { outputTokensMax: _, ...undeclared } = facts;
  return estimateEntry({
    unit: { kind: "outputTokens" },
    price: undefined,
    capacity: 1_000,
    estimate: estimate(facts),
    undeclared: () => estimate(undeclared),
    ...question,
  });
}

describe("estimateEntry()", () => {
  it("reserves what the call is expected to cost in the unit", () => {
    const facts = { requestBytes: 400, outputTokensMax: 50 };
    const of = (kind: BudgetUnit["kind"]) => entry({ unit: { kind }, price, facts }).amount;
    expect(of("tokens")).toBe(150);
    expect(of("inputTokens")).toBe(100);
    expect(of("calls")).toBe(1);
    expect(of("units")).toBe(500);
    expect(of("money")).toBe(100 + 2 * 50 + 3);
  });

  it("reserves one at least, and what the account holds at most", () => {
    expect(entry({ facts: { outputTokensMax: 0 } }).amount).toBe(1);
    expect(entry({ unit: { kind: "money" } }).amount).toBe(1);
    expect(entry({ capacity: 499 }).amount).toBe(499);
    expect(entry({ capacity: 0 }).amount).toBe(1);
  });

  it("cuts each account's estimate to what that one holds", () => {
    const amounts = [20, 300, 4_000].map((capacity) => entry({ capacity }).amount);
    expect(amounts).toEqual([20, 300, 500]);
  });

  it("leaves a declared maximum out that the account never holds", () => {
    const facts = { outputTokensMax: 1_000 };
    expect(entry({ facts })).toEqual({ amount: 1_000, source: "declared" });
    expect(entry({ facts, capacity: 999 })).toEqual({ amount: 500, source: "initial" });
    expect(entry({ facts, capacity: 400 })).toEqual({ amount: 400, source: "initial" });
  });

  it("asks for the undeclared estimate only where the declared one does not fit", () => {
    let askedCount = 0;
    const undeclared = () => {
      askedCount += 1;
      return estimate({});
    };
    entry({ facts: { outputTokensMax: 1_000 }, undeclared });
    entry({ capacity: 10, undeclared });
    expect(askedCount).toBe(0);
    entry({ facts: { outputTokensMax: 1_001 }, undeclared });
    expect(askedCount).toBe(1);
  });

  it("names the source of the count that is least certain", () => {
    const both = { requestBytes: 4, outputTokensMax: 5 };
    const sourceOf = (kind: BudgetUnit["kind"], facts: Partial<CallFacts>) =>
      entry({ unit: { kind }, facts }).source;
    expect(sourceOf("outputTokens", both)).toBe("declared");
    expect(sourceOf("tokens", both)).toBe("requestBytes");
    expect(sourceOf("money", { requestBytes: 4 })).toBe("initial");
    expect(sourceOf("calls", {})).toBe("declared");
    const known = estimate({ requestBytes: 4 }, earlier({ outputTokens: 9 }));
    expect(entry({ unit: { kind: "tokens" }, estimate: known }).source).toBe("learned");
  });
});

describe("learnedCountsOf()", () => {
  it("says what estimates in a unit are made of", () => {
    expect(learnedCountsOf({ kind: "money" })).toEqual(["inputTokens", "outputTokens"]);
    expect(learnedCountsOf({ kind: "bytes" })).toEqual(["responseBytes"]);
    expect(learnedCountsOf({ kind: "calls" })).toEqual([]);
  });
});

describe("usedBy()", () => {
  const expected = estimate({}).usage;
  const used = (known: Usage, status?: number) =>
    usedBy({ known, status, expected, outputPerByte: 0.3 });

  it("takes what is reported, and else what was expected", () => {
    expect(used({})).toEqual(expected);
    expect(used({ outputTokens: 9 }, 200)).toEqual({ ...expected, outputTokens: 9 });
  });

  it("counts the output by the bytes of the response, unless it is reported", () => {
    expect(used({ responseBytes: 11 }).outputTokens).toBe(4);
    expect(used({ responseBytes: 11, outputTokens: 2 }).outputTokens).toBe(2);
    expect(used({ responseBytes: 2 ** 50 }).outputTokens).toBe(usageCountMax);
  });

  it("does not count expected input beside tokens of caches", () => {
    expect(used({ cachedTokens: 70 }).inputTokens).toBe(0);
    expect(used({ cacheWriteTokens: 70, inputTokens: 5 }).inputTokens).toBe(5);
  });

  it("takes only what is reported of an error", () => {
    const free = { inputTokens: 0, outputTokens: 0, responseBytes: 0, customUnits: 0 };
    expect(used({ durationMs: 8 }, 429)).toEqual({ ...free, durationMs: 8 });
    expect(used({ outputTokens: 4 }, 400)).toEqual({ ...free, outputTokens: 4 });
    expect(used({}, 399)).toEqual(expected);
  });
});
