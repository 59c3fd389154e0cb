import { type Glob, globMatches, parseGlob } from "../collections/glob.js";
import { amountMax } from "./account.js";
import type { Usage } from "./usage.js";

/** Prices of one model from a time on, in 10^-`decimals` of the currency per million tokens. */
export interface ModelPrice {
  /** A pattern with `*`. */
  readonly model: string;
  /** Milliseconds since 1970. Undefined: always. */
  readonly validFromMs: number | undefined;
  /** Ascending by `aboveInputTokens`. The first one starts at 0. */
  readonly tiers: readonly {
    readonly aboveInputTokens: number;
    readonly input: number;
    readonly cached: number;
    readonly cacheWrite: number;
    readonly output: number;
  }[];
  /** The price of each call, in addition to tokens. */
  readonly call: number;
}

/** `prices` of a policy. */
export interface PriceTable {
  /** ISO 4217, such as EUR. */
  readonly currency: string;
  /** Decimal places of amounts, 4 to 9. Default 9: at most 4.5 million of the currency. */
  readonly decimals: number;
  /** The first valid match applies, so a later `validFrom` comes before an earlier one. */
  readonly models: readonly ModelPrice[];
}

/** The prices of one tier by kind of token, per million tokens. */
type TokenPrices = Omit<ModelPrice["tiers"][number], "aboveInputTokens">;

/** The price that was found for a model. */
export interface FoundPrice {
  readonly price: ModelPrice;
  /** False if no row matches: each part of `price` is then the highest in the table. */
  readonly isKnown: boolean;
}

/** Finds prices by model and time. */
export class PriceIndex {
  readonly #rows: readonly { readonly glob: Glob; readonly price: ModelPrice }[];
  readonly #dearest: ModelPrice;

  constructor({ models }: PriceTable) {
    this.#rows = models.map((price) => ({ glob: parseGlob(price.model), price }));
    this.#dearest = dearestOf(models);
  }

  /**
   * Returns the first row that matches the model and is valid at the time. A model that no row
   * matches has the highest prices of all rows, valid or not: it is better to exhaust a budget too
   * early than to let an invented model name exceed it.
   *
   * @param nowMs milliseconds since 1970
   */
  find(model: string, nowMs: number): FoundPrice {
    const row = this.#rows.find(({ glob, price: { validFromMs = 0 } }) => {
      return validFromMs <= nowMs && globMatches(glob, model);
    });
    return row === undefined
      ? { price: this.#dearest, isKnown: false }
      : { price: row.price, isKnown: true };
  }
}

/** Returns a price that is at least as high as each row, whatever a call uses. */
function dearestOf(models: readonly ModelPrice[]): ModelPrice {
  const tiers = models.flatMap((price) => price.tiers);
  const most = (name: keyof TokenPrices): number => Math.max(0, ...tiers.map((tier) => tier[name]));
  const tier = {
    aboveInputTokens: 0,
    input: most("input"),
    cached: most("cached"),
    cacheWrite: most("cacheWrite"),
    output: most("output"),
  };
  const call = Math.max(0, ...models.map((price) => price.call));
  return { model: "*", validFromMs: undefined, tiers: [tier], call };
}

const tokensPerPrice = 1_000_000;

/**
 * Returns the cost of a call, in 10^-`decimals` of the currency: exact, rounded up once, at most
 * `amountMax`. All tokens have the prices of the highest tier that the input tokens, including
 * cached ones, exceed. Absent counts are 0.
 *
 * ```
 * ceil((input * price + cached * price + written * price + output * price) / 1,000,000) + call
 * ```
 *
 * Example: 1,500 input tokens at 2.50 and 200 output tokens at 10 per million, with 9 decimals,
 * cost 5,750,000: 0.00575 of the currency.
 */
export function priceOfUsage({ tiers, call }: ModelPrice, usage: Usage): number {
  const { inputTokens = 0, cachedTokens = 0, cacheWriteTokens = 0, outputTokens = 0 } = usage;
  const totalInput = inputTokens + cachedTokens + cacheWriteTokens;
  const tier = tiers.findLast(({ aboveInputTokens }) => totalInput > aboveInputTokens) ?? tiers[0];
  if (tier === undefined) return call;
  const products: readonly (readonly [count: number, price: number])[] = [
    [inputTokens, tier.input],
    [cachedTokens, tier.cached],
    [cacheWriteTokens, tier.cacheWrite],
    [outputTokens, tier.output],
  ];
  const sum = products.reduce((total, [count, price]) => total + count * price, 0);
  // A sum that was rounded is at least 2^53, because all of its parts are integers.
  const cost = sum < Number.MAX_SAFE_INTEGER ? ceilSafe(sum) : ceilLarge(products);
  return Math.min(cost + call, amountMax);
}

/** Uses the remainder, because the quotient itself may round to an integer. */
function ceilSafe(sum: number): number {
  const rest = sum % tokensPerPrice;
  return (sum - rest) / tokensPerPrice + (rest > 0 ? 1 : 0);
}

function ceilLarge(products: readonly (readonly [count: number, price: number])[]): number {
  const sum = products.reduce((total, [count, price]) => total + BigInt(count) * BigInt(price), 0n);
  const quotient = (sum + BigInt(tokensPerPrice - 1)) / BigInt(tokensPerPrice);
  return quotient >= BigInt(amountMax) ? amountMax : Number(quotient);
}
