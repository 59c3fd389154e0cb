import { amountMax } from "../../core/budgets/account.js";
import { formatAmount } from "../../core/budgets/amount-text.js";
import type { BudgetUnit } from "../../core/budgets/budget-cost.js";
import type { PriceTable } from "../../core/budgets/price.js";
import { listWords, quoteText } from "../problems/problem.js";
import { readBy, text } from "../text/form.js";
import { findNearestName } from "../text/nearest-name.js";
import type { NodeReader } from "../text/node-reader.js";
import { type PlacedValue, placed } from "../text/object.js";
import type { TextRule } from "../text/text-rules.js";
import { countOfParts, type Decimal, parseDecimal } from "./decimal.js";

/** An amount as written. The currency of money may be defined in another file. */
export interface WrittenAmount {
  readonly text: string;
  readonly number: Decimal;
  /** A unit of `amountUnits`, or a currency. */
  readonly unit: string;
}

/** Units of amounts, and the number of whole parts in each. */
const amountUnits: Readonly<Record<string, readonly [BudgetUnit["kind"], parts: bigint]>> = {
  tokens: ["tokens", 1n],
  inputTokens: ["inputTokens", 1n],
  outputTokens: ["outputTokens", 1n],
  calls: ["calls", 1n],
  units: ["units", 1n],
  seconds: ["seconds", 1_000n],
  bytes: ["bytes", 1n],
  KiB: ["bytes", 2n ** 10n],
  MiB: ["bytes", 2n ** 20n],
  GiB: ["bytes", 2n ** 30n],
  TiB: ["bytes", 2n ** 40n],
  kB: ["bytes", 10n ** 3n],
  MB: ["bytes", 10n ** 6n],
  GB: ["bytes", 10n ** 9n],
  TB: ["bytes", 10n ** 12n],
};

/** A currency. Source: ISO 4217. */
export const currencyPattern = /^[A-Z]{3}$/;

const amountPattern =
  /^([0-9]{1,16}|[0-9]{1,3}(?:_[0-9]{3}){1,5})(\.[0-9]{1,12})? ([A-Za-z]{2,16})$/;

const amountRule: TextRule = {
  charsMax: 64,
  forbidden: /\p{Cc}/u,
  expected: "a number and a unit, such as 500 USD, 1_000_000 tokens, 100 calls or 3600 seconds",
};

/** A number and its unit, exactly as they are written. */
export const amount = placed(
  readBy<WrittenAmount>(text(amountRule, amountPattern), (reader, place) => {
    const written = reader.readText(place, amountRule);
    if (written === undefined) return undefined;
    const read = parseAmount(written);
    if (read !== undefined) return read;
    const meant = written.replaceAll(/[, ]/g, "").replace(/(?<=[0-9])(?=[A-Za-z])/, " ");
    return reader.reportContent(place.value ?? place.key, {
      id: "HG292",
      message: `${quoteText(written)} is not an amount`,
      expected: amountRule.expected,
      suggestion: parseAmount(meant) === undefined ? undefined : meant,
    });
  }),
);

/** Undefined if it is not a number with a unit. */
function parseAmount(written: string): WrittenAmount | undefined {
  const [, whole = "", fraction = "", unit = ""] = amountPattern.exec(written) ?? [];
  const digits = whole.replaceAll("_", "").replace(/^0+(?=[0-9])/, "");
  const number = parseDecimal(`${digits}${fraction}`);
  const isUnit = Object.hasOwn(amountUnits, unit) || /^[A-Za-z]{3,}$/.test(unit);
  return number && isUnit ? { text: written, number, unit } : undefined;
}

/** An amount, counted in the parts of its unit. */
export interface ReadAmount {
  readonly unit: BudgetUnit;
  /** 0 to `amountMax`. */
  readonly count: number;
}

/** Determines the unit of an amount; problems are reported. */
export function resolveAmount(
  { value, node }: PlacedValue<WrittenAmount>,
  reader: NodeReader,
  prices: PriceTable | undefined,
): ReadAmount | undefined {
  const found = unitOf(value, prices);
  if (found === undefined) {
    const currency = prices === undefined ? [] : [prices.currency];
    const units = [...Object.keys(amountUnits), ...currency];
    const isMoney = currencyPattern.test(value.unit);
    const isUnpriced = isMoney && prices === undefined;
    return reader.reportContent(node, {
      id: isUnpriced ? "HG294" : "HG293",
      message: isUnpriced
        ? "an amount of money needs `prices`, and the policy has none"
        : `${quoteText(value.unit)} is not ${isMoney ? "the currency of `prices`" : "a unit"}`,
      expected: isUnpriced
        ? `prices: {currency: ${value.unit}, models: ...}`
        : listWords(isMoney ? currency : units),
      suggestion: isMoney ? undefined : findNearestName(value.unit, units),
    });
  }
  const [unit, parts] = found;
  const count = countOfParts(value.number, parts);
  if (count === undefined) {
    const message = `${quoteText(value.text)} is finer than the unit can count`;
    const expected = unit === "money" ? "at most the decimals of `prices`" : "a whole number";
    return reader.reportContent(node, { id: "HG292", message, expected });
  }
  if (count <= BigInt(amountMax)) return { unit: { kind: unit }, count: Number(count) };
  const most = BigInt(amountMax) / parts;
  const message = `${quoteText(value.text)} is out of range`;
  const expected = `at most ${most} ${value.unit}`;
  return reader.reportContent(node, { id: "HG141", message, expected });
}

function unitOf(
  { unit }: WrittenAmount,
  prices: PriceTable | undefined,
): readonly [BudgetUnit["kind"], bigint] | undefined {
  const known = Object.hasOwn(amountUnits, unit) ? amountUnits[unit] : undefined;
  if (known !== undefined || prices?.currency !== unit) return known;
  return ["money", 10n ** BigInt(prices.decimals)];
}

/** Formats an amount for people. @param prices of the policy; an amount of money has them */
export function amountWords(
  count: number,
  { kind: unit }: BudgetUnit,
  prices: Pick<PriceTable, "currency" | "decimals"> | undefined,
): string {
  return formatAmount(count, { unit, currency: "", decimals: 0, ...prices });
}
