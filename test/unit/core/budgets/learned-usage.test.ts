import { describe, expect, it } from "vitest";
import { LearnedUsage } from "../../../../src/core/budgets/learned-usage.js";

const wanted = new Set(["outputTokens"] as const);
const kind = { caller: "llm\nm\nteam/a", model: "llm\nm" };

function learn(learned: LearnedUsage, values: readonly number[], of = kind): void {
  for (const outputTokens of values) {
    learned.learn(of, { usage: { outputTokens }, requestBytes: undefined, wanted });
  }
}

const times = (count: number, value: number): readonly number[] =>
  Array.from({ length: count }, () => value);

describe("LearnedUsage", () => {
  it("believes ten calls, and no fewer", () => {
    const learned = new LearnedUsage();
    learn(learned, times(9, 100));
    expect(learned.of(kind).quantile("outputTokens", 0.9)).toBeUndefined();
    learn(learned, [100]);
    expect(learned.of(kind).quantile("outputTokens", 0.9)).toBeDefined();
  });

  it("is never below the exact quantile, and at most 19 % and 1 above it", () => {
    let seed = 7;
    const draw = (): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    for (let round = 0; round < 50; round += 1) {
      const count = 10 + Math.floor(draw() * 1_000);
      const values = Array.from({ length: count }, () => Math.floor(2 ** (draw() * 39)));
      const learned = new LearnedUsage();
      learn(learned, values);
      const sorted = [...values].sort((one, other) => one - other);
      for (const ratio of [0.01, 0.5, 0.9, 0.99]) {
        const exact = sorted[Math.max(1, Math.ceil(ratio * count)) - 1] ?? 0;
        const found = learned.of(kind).quantile("outputTokens", ratio) ?? -1;
        expect(found).toBeGreaterThanOrEqual(exact);
        expect(found).toBeLessThanOrEqual(exact * 1.1893 + 1);
      }
    }
  });

  it("forgets old calls by halves", () => {
    const learned = new LearnedUsage();
    learn(learned, times(1_024, 1_000_000));
    learn(learned, times(4_096, 10));
    expect(learned.of(kind).quantile("outputTokens", 0.9)).toBeLessThan(20);
  });

  it("goes by the model for a caller with few calls, and by the caller's own then", () => {
    const learned = new LearnedUsage();
    const other = { ...kind, caller: "llm\nm\nteam/b" };
    learn(learned, times(20, 1_000), other);
    learn(learned, times(9, 10));
    expect(learned.of(kind).quantile("outputTokens", 0.5)).toBeGreaterThanOrEqual(1_000);
    learn(learned, [10]);
    expect(learned.of(kind).quantile("outputTokens", 0.5)).toBeLessThan(20);
  });

  it("takes any text for a caller", () => {
    const learned = new LearnedUsage();
    for (const caller of ["__proto__", "constructor", "", "\u0000"]) {
      const odd = { caller, model: caller };
      expect(learned.of(odd).quantile("outputTokens", 0.5)).toBeUndefined();
      learn(learned, times(10, 7), odd);
      expect(learned.of(odd).quantile("outputTokens", 0.5)).toBeLessThan(10);
    }
  });

  it("keeps the model's estimate while ever new callers come", () => {
    const learned = new LearnedUsage();
    for (let i = 0; i < 50_000; i += 1) learn(learned, [100], { ...kind, caller: `c${i}` });
    const fresh = { ...kind, caller: "another" };
    expect(learned.of(fresh).quantile("outputTokens", 0.9)).toBeLessThan(120);
  }, 60_000);
});
