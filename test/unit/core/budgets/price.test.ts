import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { amountMax } from "../../../../src/core/budgets/account.js";
import {
  type ModelPrice,
  PriceIndex,
  type PriceTable,
  priceOfUsage,
} from "../../../../src/core/budgets/price.js";
import { type Usage, usageCountMax } from "../../../../src/core/budgets/usage.js";
import { propertyRuns } from "../../../support/seeds.js";

/** Prices of one tier in micro-units of the currency for a million tokens. */
function tier(aboveInputTokens: number, input: number, output: number) {
  return { aboveInputTokens, input, cached: input / 2, cacheWrite: input, output };
}

function price(model: string, fields: Partial<ModelPrice> = {}): ModelPrice {
  return { model, validFromMs: undefined, tiers: [tier(0, 2_500, 10_000)], call: 0, ...fields };
}

/** The rule of `priceOfUsage`, in integers without bounds. */
function exactPrice({ tiers, call }: ModelPrice, usage: Usage): bigint {
  const [input, cached, written, output] = [
    usage.inputTokens,
    usage.cachedTokens,
    usage.cacheWriteTokens,
    usage.outputTokens,
  ].map((count = 0) => BigInt(count)) as [bigint, bigint, bigint, bigint];
  const total = input + cached + written;
  const [first, ...more] = tiers;
  const last = more.findLast(({ aboveInputTokens }) => total > BigInt(aboveInputTokens)) ?? first;
  if (last === undefined) return BigInt(call);
  const sum =
    input * BigInt(last.input) +
    cached * BigInt(last.cached) +
    written * BigInt(last.cacheWrite) +
    output * BigInt(last.output);
  const cost = (sum + 999_999n) / 1_000_000n + BigInt(call);
  return cost > BigInt(amountMax) ? BigInt(amountMax) : cost;
}

const count = fc.oneof(
  fc.integer({ min: 0, max: 200_000 }),
  fc.integer({ min: 0, max: usageCountMax }),
  fc.constantFrom(0, 1, 999_999, 1_000_000, 1_000_001, usageCountMax),
);

const amount = fc.oneof(
  fc.integer({ min: 0, max: 100_000_000_000 }),
  fc.integer({ min: 0, max: amountMax }),
  fc.constantFrom(0, 1, 999_999, amountMax),
);

const anyUsage = fc.record(
  { inputTokens: count, cachedTokens: count, cacheWriteTokens: count, outputTokens: count },
  { requiredKeys: [] },
);

const anyTier = fc.record({
  aboveInputTokens: count,
  input: amount,
  cached: amount,
  cacheWrite: amount,
  output: amount,
});

const anyPrice = fc
  .tuple(fc.array(anyTier, { minLength: 1, maxLength: 4 }), amount)
  .map(([tiers, call]): ModelPrice => {
    const sorted = tiers.toSorted((a, b) => a.aboveInputTokens - b.aboveInputTokens);
    const [first, ...more] = sorted;
    return price("m", { tiers: first ? [{ ...first, aboveInputTokens: 0 }, ...more] : [], call });
  });

describe("priceOfUsage()", () => {
  it("costs what the prices say for a million tokens, rounded up once", () => {
    const nano = price("m", {
      tiers: [
        {
          aboveInputTokens: 0,
          input: 2_500_000_000,
          cached: 1_250_000_000,
          cacheWrite: 3_000_000_000,
          output: 10_000_000_000,
        },
      ],
      call: 7,
    });
    const usage = { inputTokens: 1_500, outputTokens: 200 };
    expect(priceOfUsage(nano, usage)).toBe(5_750_000 + 7);
    expect(priceOfUsage(nano, { ...usage, cachedTokens: 2, cacheWriteTokens: 1 })).toBe(
      5_750_000 + 7 + 2_500 + 3_000,
    );
    // A millionth of the smallest part, four times: one part, and not four.
    const tiny = price("m", { tiers: [{ ...tier(0, 1, 1), cached: 1 }] });
    const one = { inputTokens: 1, cachedTokens: 1, cacheWriteTokens: 1, outputTokens: 1 };
    expect(priceOfUsage(tiny, one)).toBe(1);
    expect(priceOfUsage(tiny, {})).toBe(0);
  });

  it("charges all tokens at the last tier that the input, cached or not, is above", () => {
    const tiered = price("m", {
      tiers: [tier(0, 1_000_000, 0), tier(100, 2_000_000, 0), tier(200, 4_000_000, 0)],
    });
    expect(priceOfUsage(tiered, { inputTokens: 100 })).toBe(100);
    expect(priceOfUsage(tiered, { inputTokens: 101 })).toBe(202);
    expect(priceOfUsage(tiered, { inputTokens: 200, outputTokens: 500 })).toBe(400);
    expect(priceOfUsage(tiered, { inputTokens: 1, cachedTokens: 200 })).toBe(4 + 400);
  });

  it("is exact at any counts and prices, and never above the largest amount", () => {
    fc.assert(
      fc.property(anyPrice, anyUsage, (anyOne, usage) => {
        expect(BigInt(priceOfUsage(anyOne, usage))).toBe(exactPrice(anyOne, usage));
      }),
      propertyRuns(5_000),
    );
  });

  it("never falls when a call uses more of anything", () => {
    const flat = anyPrice.map((one) => ({ ...one, tiers: one.tiers.slice(0, 1) }));
    fc.assert(
      fc.property(flat, anyUsage, anyUsage, (one, usage, more) => {
        const sum = (name: keyof typeof usage): number =>
          Math.min(usageCountMax, (usage[name] ?? 0) + (more[name] ?? 0));
        const larger = {
          inputTokens: sum("inputTokens"),
          cachedTokens: sum("cachedTokens"),
          cacheWriteTokens: sum("cacheWriteTokens"),
          outputTokens: sum("outputTokens"),
        };
        expect(priceOfUsage(one, larger)).toBeGreaterThanOrEqual(priceOfUsage(one, usage));
      }),
      propertyRuns(100),
    );
  });
});

describe("PriceIndex", () => {
  const models = [
    price("gpt-4o*", { validFromMs: 2_000 }),
    price("gpt-4o*", { validFromMs: 1_000, call: 3 }),
    price("gpt-*", { tiers: [tier(0, 9_000, 1_000), tier(100, 4_000, 20_000)] }),
    price("o3", { call: 5 }),
  ];
  const table: PriceTable = { currency: "EUR", decimals: 6, models };
  const index = new PriceIndex(table);

  it.each([
    { model: "gpt-4o-mini", nowMs: 2_000, row: 0 },
    { model: "gpt-4o-mini", nowMs: 1_999, row: 1 },
    { model: "gpt-4o-mini", nowMs: 999, row: 2 },
    { model: "gpt-5", nowMs: 0, row: 2 },
    { model: "o3", nowMs: 0, row: 3 },
  ])("finds row $row for $model at $nowMs", ({ model, nowMs, row }) => {
    expect(index.find(model, nowMs)).toEqual({ price: models[row], isKnown: true });
  });

  it("charges a model that nobody has priced as the dearest, in each part", () => {
    const { price: dearest, isKnown } = index.find("claude", 5_000);
    expect(isKnown).toBe(false);
    expect(dearest).toMatchObject({ tiers: [tier(0, 9_000, 20_000)], call: 5 });
    fc.assert(
      fc.property(anyUsage, fc.constantFrom(...models), (usage, known) => {
        expect(priceOfUsage(dearest, usage)).toBeGreaterThanOrEqual(priceOfUsage(known, usage));
      }),
      propertyRuns(100),
    );
  });
});
