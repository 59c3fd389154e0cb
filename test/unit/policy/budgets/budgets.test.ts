import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { amountMax } from "../../../../src/core/budgets/account.js";
import { modelCharsMax } from "../../../../src/core/usage/usage-fields.js";
import { amountWords } from "../../../../src/policy/budgets/amount.js";
import {
  accountPartsMax,
  budgetItemsMax,
  budgetOverridesMax,
} from "../../../../src/policy/budgets/budget-form.js";
import { budgetsMax, budgetsPerServiceMax } from "../../../../src/policy/budgets/budget-list.js";
import type { BudgetPolicy } from "../../../../src/policy/budgets/budget-policy.js";
import { modelPricesMax, tiersMax } from "../../../../src/policy/budgets/price-form.js";
import { usagePathMax } from "../../../../src/policy/budgets/usage-form.js";
import { type ParsedPolicy, parsePolicy } from "../../../../src/policy/parse.js";
import { setHeadersMax } from "../../../../src/policy/text/request-headers.js";
import { propertyRuns } from "../../../support/seeds.js";

const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec:";

interface Written {
  /** Each the inside of braces. */
  readonly budgets?: readonly string[];
  readonly models?: readonly string[];
  readonly decimals?: number;
  /** The inside of the service's `usage`. */
  readonly usage?: string;
}

const someBudget = "name: b, amount: 5 calls, period: day";

function parse({ budgets = [someBudget], models, decimals = 9, usage = "" }: Written) {
  const rows = models?.map((model) => `      - {${model}}`) ?? [];
  const prices = ["  prices:", "    currency: EUR", `    decimals: ${decimals}`, "    models:"];
  const text = [
    head,
    ...(models === undefined ? [] : [...prices, ...rows]),
    "  services:",
    `    - {name: llm, usage: {${usage}}}`,
    ...(budgets.length === 0 ? [] : ["  budgets:"]),
    ...budgets.map((budget) => `    - {${budget}}`),
  ].join("\n");
  return parsePolicy([{ file: "a.yaml", text }]);
}

function ids(written: Written): readonly string[] {
  const parsed = parse(written);
  return parsed.kind === "problems" ? parsed.problems.map(({ id }) => id) : [];
}

function right(parsed: ParsedPolicy) {
  if (parsed.kind === "problems") throw new Error(JSON.stringify(parsed.problems, undefined, 1));
  return parsed;
}

function budgetOf(more: string, models?: readonly string[]): BudgetPolicy {
  const written = { budgets: [`name: b, ${more}`], ...(models === undefined ? {} : { models }) };
  const [first] = right(parse(written)).budgets;
  if (first === undefined) throw new Error("no budget");
  return first;
}

function list(count: number, one: (i: number) => string): readonly string[] {
  return Array.from({ length: count }, (_, i) => one(i));
}

const anyPrice = ["model: '*', input: 1"];

describe("readBudgets()", () => {
  it("completes a budget that says nothing more", () => {
    expect(budgetOf("amount: 5 calls, period: day")).toEqual({
      name: "b",
      services: undefined,
      models: [],
      per: [],
      unit: { kind: "calls" },
      amount: 5,
      overrides: [],
      period: { kind: "calendar", unit: "day", timeZone: "UTC" },
      over: undefined,
      warnAt: undefined,
      warnHeaders: [{ name: "x-headgate-budget-warning", value: "b" }],
      onStoreFailure: "local",
      whenLost: "release",
      isDryRun: false,
    });
  });

  it.each([
    { amount: "1_000_000 tokens", unit: "tokens", count: 1_000_000 },
    { amount: "1.0 tokens", unit: "tokens", count: 1 },
    { amount: "0 calls", unit: "calls", count: 0 },
    { amount: "007 calls", unit: "calls", count: 7 },
    { amount: "10 MiB", unit: "bytes", count: 10_485_760 },
    { amount: "1.5 KiB", unit: "bytes", count: 1_536 },
    { amount: "2 MB", unit: "bytes", count: 2_000_000 },
    { amount: "3600 seconds", unit: "seconds", count: 3_600_000 },
    { amount: "0.001 seconds", unit: "seconds", count: 1 },
    { amount: "50 units", unit: "units", count: 50 },
    { amount: "5 outputTokens", unit: "outputTokens", count: 5 },
    { amount: "5 inputTokens", unit: "inputTokens", count: 5 },
    { amount: "0.000000001 EUR", unit: "money", count: 1 },
    { amount: "4503599.627370496 EUR", unit: "money", count: amountMax },
  ])("reads $amount as $count of $unit", ({ amount, unit, count }) => {
    const { unit: read, amount: found } = budgetOf(`amount: ${amount}, period: day`, anyPrice);
    expect([read.kind, found]).toEqual([unit, count]);
  });

  it.each([
    "4503599.627370497 EUR",
    "0.0000000001 EUR",
    "0.5 bytes",
    "0.0001 seconds",
    "4503599627370497 calls",
    "1e3 calls",
    "0x10 calls",
    "+5 calls",
    "-5 calls",
    ".5 EUR",
    "5. EUR",
    "5EUR",
    "5  EUR",
    "EUR 5",
    "5",
    "5 eur",
    "5 USD",
    "5 constructor",
    "5 __proto__",
    "1_00 calls",
    "1__000 calls",
    "99999999999999999 calls",
  ])("refuses the amount %s", (amount) => {
    const found = ids({ budgets: [`name: b, amount: "${amount}", period: day`], models: anyPrice });
    expect(found).toHaveLength(1);
    expect(["HG141", "HG292", "HG293"]).toContain(found[0]);
  });

  it("reads money exactly, with as many decimals as there are", () => {
    const decimals = fc.integer({ min: 4, max: 9 });
    fc.assert(
      fc.property(decimals, fc.bigInt({ min: 0n, max: BigInt(amountMax) }), (places, parts) => {
        const digits = String(parts).padStart(places + 1, "0");
        const written = `${digits.slice(0, -places)}.${digits.slice(-places)} EUR`;
        const budgets = [`name: b, amount: ${written}, period: day`];
        const { budgets: read, prices } = right(
          parse({ budgets, models: anyPrice, decimals: places }),
        );
        const [first] = read;
        expect(first?.amount).toBe(Number(parts));
        // What is told of it says the same again.
        const told = amountWords(first?.amount ?? -1, { kind: "money" }, prices);
        const again = [`name: b, amount: ${told.replaceAll(",", "")}, period: day`];
        const repeated = parse({ budgets: again, models: anyPrice, decimals: places });
        expect(right(repeated).budgets[0]?.amount).toBe(Number(parts));
      }),
      propertyRuns(60),
    );
  });

  it.each([
    { period: "week", read: { kind: "calendar", unit: "week", timeZone: "UTC" } },
    { period: "1m", read: { kind: "drain", periodUs: 60_000_000 } },
    { period: "1h30m", read: { kind: "drain", periodUs: 5_400_000_000 } },
    { period: "520w", read: { kind: "drain", periodUs: 520 * 7 * 86_400_000_000 } },
  ])("reads the period $period", ({ period, read }) => {
    expect(budgetOf(`amount: 5 calls, period: ${period}`).period).toEqual(read);
  });

  it("holds bounds, each at its last right number", () => {
    const many = (name: string, texts: readonly string[]): Written => ({
      budgets: [`${someBudget}, ${name}: [${texts.join(", ")}]`],
    });
    const overrides = (count: number): Written => ({
      budgets: [
        `${someBudget}, per: [model], overrides: [${list(
          count,
          (i) => `{values: [m${i}], amount: 5 calls}`,
        ).join(", ")}]`,
      ],
    });
    const named = (count: number, more: string): Written => ({
      budgets: list(count, (i) => `name: b${i}, amount: 5 calls, period: day${more}`),
    });
    const headers = (count: number): Written => {
      const rows = list(count, (i) => `x-${i}: y`).join(", ");
      return { budgets: [`${someBudget}, over: {annotate: {headers: {${rows}}}}`] };
    };
    expect(
      ids(
        many(
          "models",
          list(budgetItemsMax, (i) => `m${i}`),
        ),
      ),
    ).toEqual([]);
    expect(
      ids(
        many(
          "models",
          list(budgetItemsMax + 1, (i) => `m${i}`),
        ),
      ),
    ).toEqual(["HG160"]);
    expect(ids(many("models", ["m".repeat(modelCharsMax)]))).toEqual([]);
    expect(ids(many("models", ["m".repeat(modelCharsMax + 1)]))).toEqual(["HG131"]);
    expect(
      ids(
        many(
          "per",
          list(accountPartsMax, (i) => `{header: x-${i}}`),
        ),
      ),
    ).toEqual([]);
    expect(
      ids(
        many(
          "per",
          list(accountPartsMax + 1, (i) => `{header: x-${i}}`),
        ),
      ),
    ).toEqual(["HG160"]);
    expect(ids(overrides(budgetOverridesMax))).toEqual([]);
    expect(ids(overrides(budgetOverridesMax + 1))).toEqual(["HG160"]);
    expect(ids(headers(setHeadersMax))).toEqual([]);
    expect(ids(headers(setHeadersMax + 1))).toEqual(["HG160"]);
    expect(ids(named(budgetsPerServiceMax, ""))).toEqual([]);
    expect(ids(named(budgetsPerServiceMax + 1, ""))).toEqual(["HG160"]);
  });

  it("holds the number of budgets, each for a service of its own", () => {
    const services = list(20, (i) => `{name: s${i}, usage: {}}`).join(", ");
    const policyOf = (count: number) => {
      const budgets = list(count, (i) => {
        return `{name: b${i}, services: [s${i % 20}], amount: 5 calls, period: day}`;
      });
      const text = `${head}\n  services: [${services}]\n  budgets: [${budgets.join(", ")}]\n`;
      return parsePolicy([{ file: "a.yaml", text }]);
    };
    expect(right(policyOf(budgetsMax)).budgets).toHaveLength(budgetsMax);
    const parsed = policyOf(budgetsMax + 1);
    expect(parsed.kind === "problems" && parsed.problems.map(({ id }) => id)).toEqual(["HG160"]);
  });

  it("tells of one call at a time only where an account is too small for its estimate", () => {
    const warnings = (budget: string, usage: string) => {
      const parsed = right(parse({ budgets: [`name: b, ${budget}`], models: anyPrice, usage }));
      return parsed.warnings.problems.map(({ id, expected }) => ({ id, expected }));
    };
    const initial = "estimate: {initial: 600}";
    expect(warnings("amount: 600 outputTokens, period: day", initial)).toEqual([]);
    expect(warnings("amount: 599 outputTokens, period: day", initial)).toEqual([
      { id: "HG254", expected: expect.stringContaining("{initial: 599}") },
    ]);
    // The number that is told is one that works.
    expect(warnings("amount: 599 outputTokens, period: day", "estimate: {initial: 599}")).toEqual(
      [],
    );
    expect(warnings("amount: 0 outputTokens, period: day", initial)).toEqual([]);
  });
});

describe("readPrices()", () => {
  const withPrices = (...models: readonly string[]) => right(parse({ models })).prices?.models;

  it("puts later prices of one pattern first, and leaves patterns in their order", () => {
    const found = withPrices(
      "model: a*, input: 1",
      "model: b, input: 2",
      "model: a*, input: 3, validFrom: 2026-01-01",
      "model: a*, input: 4, validFrom: 2026-02-01T00:00:00+01:00",
    );
    expect(found?.map(({ model, validFromMs }) => [model, validFromMs])).toEqual([
      ["a*", 1_769_900_400_000],
      ["a*", 1_767_225_600_000],
      ["a*", undefined],
      ["b", undefined],
    ]);
  });

  it("takes for a tier what it leaves out from the one before", () => {
    const tiers = "[{aboveInputTokens: 5, output: 9}, {aboveInputTokens: 8, input: 3}]";
    const [row] =
      withPrices(`model: a, input: 2, cached: 1, cacheWrite: 2.5, output: 4, tiers: ${tiers}`) ??
      [];
    const unit = 1_000_000_000;
    expect(row?.tiers).toEqual([
      {
        aboveInputTokens: 0,
        input: 2 * unit,
        cached: unit,
        cacheWrite: 2.5 * unit,
        output: 4 * unit,
      },
      {
        aboveInputTokens: 5,
        input: 2 * unit,
        cached: unit,
        cacheWrite: 2.5 * unit,
        output: 9 * unit,
      },
      // Input has a new price, and so has what was read from a cache.
      {
        aboveInputTokens: 8,
        input: 3 * unit,
        cached: 3 * unit,
        cacheWrite: 3 * unit,
        output: 9 * unit,
      },
    ]);
  });

  it("reads the same price with and without quotes, zeros and a fraction", () => {
    const found = withPrices(
      "model: a, input: 2.5",
      'model: b, input: "2.500"',
      "model: c, input: 2.50000",
    );
    expect(new Set(found?.map(({ tiers }) => tiers[0]?.input))).toEqual(new Set([2_500_000_000]));
  });

  it("holds bounds", () => {
    const models = (count: number) => ids({ models: list(count, (i) => `model: m${i}, input: 1`) });
    expect(models(modelPricesMax)).toEqual([]);
    expect(models(modelPricesMax + 1)).toEqual(["HG160"]);
    const tiers = (count: number) => {
      const rows = list(count, (i) => `{aboveInputTokens: ${i + 1}, input: 1}`).join(", ");
      return ids({ models: [`model: a, input: 1, tiers: [${rows}]`] });
    };
    expect(tiers(tiersMax)).toEqual([]);
    expect(tiers(tiersMax + 1)).toEqual(["HG160"]);
  });
});

describe("usage", () => {
  const usageOf = (usage: string) => right(parse({ usage })).services[0]?.usage;

  it("reads model, maximum and usage from bodies where nothing is said", () => {
    expect(usageOf("")).toEqual({
      model: { kind: "body" },
      declaredMax: { kind: "body" },
      source: { kind: "body", format: "auto", fields: {} },
      requestBytesMax: 1_048_576,
      estimate: { quantile: 0.9, initial: 1_000 },
      callMsMax: 1_800_000,
    });
  });

  it("looks for a declared maximum in a body only where it reads one", () => {
    expect(usageOf("model: {header: x-model}")?.declaredMax).toBeUndefined();
    expect(usageOf("declaredMax: none")?.declaredMax).toBeUndefined();
    expect(usageOf("model: {fixed: a}, declaredMax: body")?.declaredMax).toEqual({ kind: "body" });
  });

  it("bounds paths, and takes no name of an object for a count", () => {
    const path = (count: number) => list(count, () => "a").join(".");
    const from = (fields: string) => ids({ usage: `from: {body: {fields: {${fields}}}}` });
    expect(from(`outputTokens: ${path(usagePathMax)}`)).toEqual([]);
    expect(from(`outputTokens: ${path(usagePathMax + 1)}`)).toEqual(["HG250"]);
    expect(from("__proto__: a")).toEqual(["HG133"]);
    expect(from("constructor: a")).toEqual(["HG133"]);
  });
});
