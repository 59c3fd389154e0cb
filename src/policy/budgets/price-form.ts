import { parseTimestampUs } from "../../core/base/timestamp.js";
import { amountMax } from "../../core/budgets/account.js";
import type { ModelPrice, PriceTable } from "../../core/budgets/price.js";
import { usageCountMax } from "../../core/budgets/usage.js";
import { quoteText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import { readBy, text, whole } from "../text/form.js";
import { field, innerBlock, items, object, placed, type ReadBlock } from "../text/object.js";
import type { TextRule } from "../text/text-rules.js";
import { currencyPattern } from "./amount.js";
import { countOfParts, decimal, type PlacedDecimal } from "./decimal.js";
import { modelPattern } from "./model-pattern.js";

/** Maximum number of rows of one price table. */
export const modelPricesMax = 512;

/** Maximum number of tiers of one row, besides its own prices. */
export const tiersMax = 8;

/** Bounds of the decimal places of amounts. */
const decimalsBounds = { min: 4, max: 9 } as const;

const currencyRule: TextRule = {
  charsMax: 3,
  forbidden: /[^A-Z]/,
  expected: "a currency of ISO 4217, such as USD or EUR",
};

const currency = readBy(text(currencyRule, currencyPattern), (reader, place) => {
  const read = reader.readText(place, currencyRule);
  if (read === undefined || currencyPattern.test(read)) return read;
  const message = `${quoteText(read)} is not a currency`;
  const { expected } = currencyRule;
  return reader.reportContent(place.value ?? place.key, { id: "HG293", message, expected });
});

const timeRule: TextRule = {
  charsMax: 40,
  forbidden: /\p{Cc}/u,
  expected: "a date such as 2026-01-01 (in UTC), or a time such as 2026-01-01T00:00:00+01:00",
};

const timePattern = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))?$/;

/** A date or a time, in milliseconds since 1970. Source: RFC 3339 section 5.6. */
const time = readBy(text(timeRule, timePattern), (reader, place) => {
  const written = reader.readText(place, timeRule);
  if (written === undefined) return undefined;
  const isDate = written.length === "2026-01-01".length;
  const us = timePattern.test(written)
    ? parseTimestampUs(isDate ? `${written}T00:00:00Z` : written)
    : undefined;
  if (us !== undefined && us >= 0) return Math.floor(us / 1_000);
  const message = `${quoteText(written)} is not a date or a time with an offset`;
  const { expected } = timeRule;
  return reader.reportContent(place.value ?? place.key, { id: "HG295", message, expected });
});

const perMillion = "for a million tokens";

const tokenRows = {
  input: field(decimal, `The price of input ${perMillion}.`, { larger: "stricter" }),
  cached: field(
    decimal,
    `The price of input that was read from a cache, ${perMillion}. Default: \`input\`.`,
    { larger: "stricter" },
  ),
  cacheWrite: field(
    decimal,
    `The price of input that was written to a cache, ${perMillion}. Default: \`input\`.`,
    { larger: "stricter" },
  ),
  output: field(decimal, `The price of output ${perMillion}.`, { larger: "stricter" }),
} as const;

const tier = object(
  { title: "a tier", docs: "Prices of calls with more input. What is left out is as before." },
  {
    aboveInputTokens: field(
      whole({ min: 1, max: usageCountMax }),
      "The tier holds for all tokens of calls with more input tokens than this, cached ones " +
        "included.",
      { larger: "different", needs: "a number of input tokens" },
    ),
    ...tokenRows,
  },
);

const modelPrice = object(
  { title: "a price", docs: "The price of a model." },
  {
    model: field(placed(modelPattern), "The model; `*` stands for any text.", {
      needs: "a model, such as gpt-4o*",
    }),
    validFrom: field(
      time,
      "From when on, as a date in UTC or an RFC 3339 time. Until then, an earlier row of the " +
        "same `model` counts. Default: always.",
      { larger: "different", as: "validFromMs" },
    ),
    ...tokenRows,
    call: field(decimal, "The price of each call, beside its tokens. Default: 0.", {
      larger: "stricter",
    }),
    tiers: field(
      items(innerBlock(tier), {
        expected: "a list of tiers: {aboveInputTokens: 200000, input: 5, output: 15}",
        max: tiersMax,
      }),
      "Other prices for calls with much input.",
      { default: [] },
    ),
  },
  {
    data: (read) => read,
    check(block) {
      const isFree = ["input", "output", "call"].every((name) => block.isLeftOut(name));
      if (!isFree) return;
      block.reader.report(block.fields.node, {
        id: "HG125",
        message: "the price says no amount",
        expected: "input and output, or call: amounts of the currency",
      });
    },
  },
);

type ReadPrice = ReadBlock<typeof modelPrice.defaults>;

const rowsExpected = "a list of prices: {model: gpt-4o*, input: 2.50, output: 10}";

/** `prices`. */
export const prices = object(
  { title: "prices", docs: "What calls of models cost. Allowed in one file of a policy." },
  {
    currency: field(currency, "The currency of all prices and amounts of money.", {
      needs: currencyRule.expected,
    }),
    decimals: field(
      whole(decimalsBounds),
      "Decimal places that amounts are counted in. Fewer allow larger amounts: with 9, at most " +
        "4.5 million of the currency. Changing it changes the unit of what is spent already.",
      { larger: "different", default: 9 },
    ),
    models: field(
      items(innerBlock(modelPrice), { expected: rowsExpected, max: modelPricesMax, min: 1 }),
      "Prices by model. The first row whose pattern matches counts.",
      { needs: rowsExpected },
    ),
  },
  {
    data({ currency: unit, decimals, models = [] }): PriceTable | undefined {
      if (unit === undefined) return undefined;
      const rows = models.flatMap((row) => readRow(row, decimals) ?? []);
      return { currency: unit, decimals, models: inOrder(rows) };
    },
    check(block, _, { models }) {
      if (models?.length === 0) {
        const message = '"models" has no price';
        block.report("models", { id: "HG125", message, expected: rowsExpected });
      }
      refuseSame(models ?? []);
    },
  },
);

/** Groups rows of one pattern at the place of the first of them, later times first. */
function inOrder(rows: readonly ModelPrice[]): readonly ModelPrice[] {
  const firsts = new Map<string, number>();
  rows.forEach(({ model }, index) => {
    if (!firsts.has(model)) firsts.set(model, index);
  });
  const orderOf = ({ model }: ModelPrice): number => firsts.get(model) ?? 0;
  return rows.toSorted(
    (one, other) =>
      orderOf(one) - orderOf(other) || (other.validFromMs ?? -1) - (one.validFromMs ?? -1),
  );
}

function refuseSame(rows: readonly ReadPrice[]): void {
  const known = new Set<string>();
  for (const { block, data } of rows) {
    const isTimeWrong = data.validFromMs === undefined && !block.isLeftOut("validFrom");
    if (data.model === undefined || isTimeWrong) continue;
    const key = JSON.stringify([data.model.value, data.validFromMs]);
    if (known.has(key)) {
      const message = `${quoteText(data.model.value)} already has a price from this time on`;
      block.report("model", { id: "HG296", message });
    }
    known.add(key);
  }
}

/** Prices of 0 for a row that does not set them. */
const free = { input: 0, output: 0, call: 0 };

function readRow({ block, data }: ReadPrice, decimals: number): ModelPrice | undefined {
  const { model, validFromMs, call, tiers, ...own } = data;
  if (model === undefined) return undefined;
  const first = { aboveInputTokens: 0, ...tokenPrices(block, own, { decimals, before: free }) };
  let last = first;
  const more = tiers.flatMap(({ block: place, data: { aboveInputTokens, ...said } }) => {
    if (aboveInputTokens === undefined) return [];
    if (aboveInputTokens <= last.aboveInputTokens) {
      const message = `the tier before it begins at ${last.aboveInputTokens} input tokens`;
      place.refuseOrder(["aboveInputTokens"], message, "tiers in ascending order");
    }
    last = { aboveInputTokens, ...tokenPrices(place, said, { decimals, before: last }) };
    return [last];
  });
  const perCall = priceOf(block, call, decimals) ?? 0;
  return { model: model.value, validFromMs, tiers: [first, ...more], call: perCall };
}

type TokenPrices = Omit<ModelPrice["tiers"][number], "aboveInputTokens">;

/** Cached input costs as much as input, unless this row or the one before sets a price. */
function tokenPrices(
  block: Block,
  read: Readonly<Record<keyof TokenPrices, PlacedDecimal | undefined>>,
  { decimals, before }: { decimals: number; before: Partial<TokenPrices> },
): TokenPrices {
  const own = (name: keyof TokenPrices): number | undefined => priceOf(block, read[name], decimals);
  const input = own("input") ?? before.input ?? 0;
  const cached = own("cached") ?? (read.input === undefined ? before.cached : undefined) ?? input;
  const written = read.input === undefined ? before.cacheWrite : undefined;
  const cacheWrite = own("cacheWrite") ?? written ?? input;
  return { input, cached, cacheWrite, output: own("output") ?? before.output ?? 0 };
}

function priceOf(
  { reader }: Block,
  read: PlacedDecimal | undefined,
  decimals: number,
): number | undefined {
  if (read === undefined) return undefined;
  const count = countOfParts(read.value, 10n ** BigInt(decimals));
  if (count === undefined) {
    return reader.reportContent(read.node, {
      id: "HG292",
      message: `the price is finer than ${decimals} decimals`,
      expected: `at most ${decimals} decimals, or more \`decimals\``,
    });
  }
  if (count <= BigInt(amountMax)) return Number(count);
  const expected = `at most ${BigInt(amountMax) / 10n ** BigInt(decimals)}`;
  return reader.reportContent(read.node, {
    id: "HG141",
    message: "the price is out of range",
    expected,
  });
}
