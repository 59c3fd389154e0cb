/** The unit of the amounts of a budget. */
export interface AmountUnit {
  /** A kind of `BudgetUnit`. */
  readonly unit: string;
  /** ISO 4217. Only for money. */
  readonly currency: string;
  /** For money: amounts are in 10^-`decimals` of the currency. */
  readonly decimals: number;
}

/**
 * Formats an amount for people, exactly: `1,250.50 USD`, `0.00575 USD`, `12.5 seconds`,
 * `1,000 tokens`. Money has at least two decimal places, and as many as it needs.
 *
 * @param amount in the budget's unit
 */
export function formatAmount(amount: number | bigint, unit: AmountUnit): string {
  return `${grouped(decimalText(amount, unit))} ${unitText(unit)}`;
}

/** Formats an estimated amount for people. Rounded, money to two decimal places. */
export function formatEstimate(amount: number | bigint, unit: AmountUnit): string {
  const step = 10n ** BigInt(Math.max(0, placesOf(unit) - (unit.unit === "money" ? 2 : 0)));
  const rounded = ((BigInt(amount) + step / 2n) / step) * step;
  return formatAmount(rounded, unit);
}

/** Formats an amount for programs as an exact number: `1250.50`, `0.00575`, `12.5`, `1000`. */
export function decimalText(amount: number | bigint, unit: AmountUnit): string {
  const places = placesOf(unit);
  const digits = String(amount).padStart(places + 1, "0");
  if (places === 0) return digits;
  const rest = digits.slice(-places).replace(/0+$/, "");
  const shown = unit.unit === "money" ? rest.padEnd(Math.min(2, places), "0") : rest;
  const whole = digits.slice(0, -places);
  return shown === "" ? whole : `${whole}.${shown}`;
}

/** Returns the text that follows an amount. */
export function unitText({ unit, currency }: AmountUnit): string {
  if (unit === "money") return currency;
  return unitTexts[unit] ?? unit;
}

const unitTexts: Readonly<Record<string, string>> = {
  inputTokens: "input tokens",
  outputTokens: "output tokens",
};

/**
 * Parses an amount that a person wrote, exactly: `100`, `1,250.50`, `0.5 USD`. The unit is
 * optional. Undefined for anything else, and for more decimal places than the unit has.
 */
export function parseAmount(text: string, unit: AmountUnit): bigint | undefined {
  const [, number = "", named = ""] =
    /^([0-9][0-9_,]{0,20}(?:\.[0-9]{1,9})?)\s*(.*)$/.exec(text.trim()) ?? [];
  const [whole = "", rest = ""] = number.replaceAll(/[_,]/g, "").split(".");
  const places = placesOf(unit);
  if (whole === "" || rest.length > places) return undefined;
  if (named !== "" && ![unit.unit, unitText(unit)].includes(named)) return undefined;
  return BigInt(whole + rest.padEnd(places, "0"));
}

/** Returns the decimal places of amounts as people write them. */
function placesOf({ unit, decimals }: AmountUnit): number {
  if (unit === "money") return decimals;
  return unit === "seconds" ? 3 : 0;
}

function grouped(decimal: string): string {
  const [whole = "", rest] = decimal.split(".");
  const groups = whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ",");
  return rest === undefined ? groups : `${groups}.${rest}`;
}
