import { describe, expect, it } from "vitest";
import {
  decimalText,
  formatAmount,
  formatEstimate,
  parseAmount,
} from "../../../../src/core/budgets/amount-text.js";

const money = { unit: "money", currency: "USD", decimals: 9 };
const plain = (unit: string) => ({ unit, currency: "", decimals: 0 });

describe("formatAmount()", () => {
  it("writes money exactly, with at least two decimal places", () => {
    const rows: readonly (readonly [amount: number | bigint, text: string])[] = [
      [0, "0.00 USD"],
      [1, "0.000000001 USD"],
      [5_750_000, "0.00575 USD"],
      [1_250_500_000_000, "1,250.50 USD"],
      [4_503_599_627_370_496n, "4,503,599.627370496 USD"],
    ];
    for (const [amount, text] of rows) expect(formatAmount(amount, money)).toBe(text);
    expect(formatAmount(12_345, { ...money, decimals: 4 })).toBe("1.2345 USD");
  });

  it("writes other units as they are, and seconds from milliseconds", () => {
    expect(formatAmount(1_234_567, plain("tokens"))).toBe("1,234,567 tokens");
    expect(formatAmount(7, plain("outputTokens"))).toBe("7 output tokens");
    expect(formatAmount(12_500, plain("seconds"))).toBe("12.5 seconds");
    expect(formatAmount(3_600_000, plain("seconds"))).toBe("3,600 seconds");
  });
});

describe("formatEstimate()", () => {
  it("rounds what no one can know exactly", () => {
    expect(formatEstimate(466_850_931_895, money)).toBe("466.85 USD");
    expect(formatEstimate(5_000_000n, money)).toBe("0.01 USD");
    expect(formatEstimate(4_999_999n, money)).toBe("0.00 USD");
    expect(formatEstimate(12_500, plain("seconds"))).toBe("13 seconds");
    expect(formatEstimate(1_342_823, plain("tokens"))).toBe("1,342,823 tokens");
  });
});

describe("decimalText()", () => {
  it("writes numbers that programs read", () => {
    expect(decimalText(1_250_500_000_000n, money)).toBe("1250.50");
    expect(decimalText(1_234_567, plain("bytes"))).toBe("1234567");
  });
});

describe("parseAmount()", () => {
  it("reads what it writes, exactly", () => {
    for (const amount of [0n, 1n, 999n, 5_750_000n, 4_503_599_627_370_496n]) {
      expect(parseAmount(formatAmount(amount, money), money)).toBe(amount);
      expect(parseAmount(decimalText(amount, money), money)).toBe(amount);
      const seconds = plain("seconds");
      expect(parseAmount(formatAmount(amount, seconds), seconds)).toBe(amount);
    }
    expect(parseAmount("1_000 tokens", plain("tokens"))).toBe(1_000n);
    expect(parseAmount("100USD", money)).toBe(100_000_000_000n);
  });

  it("refuses other units, fractions that do not exist, and all that is no amount", () => {
    expect(parseAmount("100 EUR", money)).toBeUndefined();
    expect(parseAmount("1.5", plain("tokens"))).toBeUndefined();
    expect(parseAmount("0.0000000001", money)).toBeUndefined();
    expect(parseAmount("1.2345", { ...money, decimals: 3 })).toBeUndefined();
    for (const text of ["", "-1", "1e3", ".5", "NaN", "1.", "x1", "1 2"]) {
      expect(parseAmount(text, money)).toBeUndefined();
    }
  });
});
