import { describe, expect, it } from "vitest";
import { estimateEntry, estimateUsage, usedBy } from "../../../../src/core/budgets/estimate.js";
import { LearnedUsage } from "../../../../src/core/budgets/learned-usage.js";
import { type CallFacts, usageCountMax } from "../../../../src/core/budgets/usage.js";

const settings = { quantile: 0.9, initial: 500 };
const nothing = new LearnedUsage().of({ caller: "a", model: "m" });
const unit = { kind: "outputTokens" } as const;

function entryOf(facts: Omit<CallFacts, "model">, capacity: number, learned = nothing) {
  const estimate = estimateUsage({ model: "m", ...facts }, learned, settings);
  const undeclared = () => estimateUsage({ model: "m" }, learned, settings);
  return estimateEntry({ unit, price: undefined, capacity, estimate, undeclared });
}

describe("estimateUsage()", () => {
  it("takes what is declared, then the size of the request, then what nothing is known of", () => {
    const facts = { model: "m", outputTokensMax: 80, requestBytes: 4_001 };
    const { usage, sources } = estimateUsage(facts, nothing, settings);
    expect(usage).toMatchObject({ outputTokens: 80, inputTokens: 1_001, responseBytes: 500 });
    expect(sources).toMatchObject({
      outputTokens: "declared",
      inputTokens: "requestBytes",
      responseBytes: "initial",
    });
  });

  it("is never above what a count may be", () => {
    const facts = { model: "m", outputTokensMax: 2 ** 52, requestBytes: 2 ** 52 };
    const { usage } = estimateUsage(facts, nothing, settings);
    expect(usage).toMatchObject({ outputTokens: usageCountMax, inputTokens: usageCountMax });
  });
});

describe("estimateEntry()", () => {
  it("is at least 1, also where nothing fits", () => {
    expect(entryOf({ outputTokensMax: 0 }, 1_000).amount).toBe(1);
    expect(entryOf({ outputTokensMax: 9 }, 0).amount).toBe(1);
  });

  it("is at most the capacity", () => {
    expect(entryOf({}, 300)).toEqual({ amount: 300, source: "initial" });
  });

  it("believes no maximum above the capacity, and every one up to it", () => {
    expect(entryOf({ outputTokensMax: 1_001 }, 1_000)).toEqual({ amount: 500, source: "initial" });
    expect(entryOf({ outputTokensMax: 1_000 }, 1_000)).toEqual({
      amount: 1_000,
      source: "declared",
    });
  });
});

describe("usedBy()", () => {
  const expected = { inputTokens: 10, outputTokens: 20 };

  it("charges errors nothing but what they report", () => {
    const known = { inputTokens: 3 };
    const used = usedBy({ known, status: 500, expected, outputPerByte: 1 });
    expect(used).toMatchObject({ inputTokens: 3, outputTokens: 0 });
  });

  it("counts output by bytes where it was not reported, and no input twice", () => {
    const known = { responseBytes: 9, cachedTokens: 4 };
    const used = usedBy({ known, status: 200, expected, outputPerByte: 0.5 });
    expect(used).toEqual({ ...known, inputTokens: 0, outputTokens: 5 });
  });
});
